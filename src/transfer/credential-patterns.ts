import { secretAssignments } from './secret-assignments.ts'

/** A kind of secret to mask. */
export interface SecretPattern {
  /** What the mask calls it: letters, digits, `-`, `_` and `.`. */
  name: string
  /**
   * What finds it. Of a match of a regular expression, the group `secret` is masked if it has one, else the whole. A
   * function gives the places to mask, each as its first index and the one after its last.
   */
  pattern: RegExp | ((text: string) => Iterable<readonly [start: number, end: number]>)
}

/**
 * No word goes on before: but the letter of an escape in JSON text (`\n`, `\u0020`), of an escape in a URL (`%3D`) or
 * of a terminal's colour (`[32m`) is none.
 */
const START = String.raw`(?:(?<!\w)|(?<=\\[nrtbf])|(?<=\\u[\dA-Fa-f]{4})|(?<=%[\dA-Fa-f]{2})|(?<=\[[\d;]{1,12}m))`
const KEY_NAME = '(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?'

/**
 * The credentials that are known by their form. Where two overlap, the earlier one names the mask.
 *
 * Quantifiers are bounded, or stand behind a start that their own characters cannot hold: a text is searched in time
 * that grows with its length.
 */
export const CREDENTIAL_PATTERNS: readonly SecretPattern[] = [
  // https://www.rfc-editor.org/rfc/rfc7468#section-10. One that breaks off loses the lines there are.
  known(
    'private-key',
    String.raw`-----BEGIN ${KEY_NAME}-----(?:(?:[^-"'\u0060]|-(?!----)){0,20000}-----END ${KEY_NAME}-----|(?:(?:\s|\\{1,15}[nrt]){1,8}[A-Za-z0-9+/=]{16,})*)`,
  ),
  // https://www.rfc-editor.org/rfc/rfc7519#section-3
  token('jwt', 'eyJ', String.raw`(?<!-eyJ)[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}`),
  // https://docs.claude.com/en/api/admin-api/apikeys/get-api-key
  token('anthropic-key', 'sk-ant-', String.raw`[\w-]{20,}`),
  // https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
  token('openrouter-key', 'sk-or-', String.raw`[\w-]{20,}`),
  token('groq-key', 'gsk_', '[A-Za-z0-9]{40,}'),
  token('xai-key', 'xai-', '[A-Za-z0-9]{40,}'),
  // https://platform.openai.com/docs/api-reference/admin-api-keys. Others who speak its protocol have the form too.
  token('openai-key', 'sk-', String.raw`(?=[A-Za-z_-]{0,100}\d)[\w-]{20,}`),
  // https://cloud.google.com/docs/authentication/api-keys
  token('google-key', 'AIza', String.raw`[\w-]{35}(?![\w-])`),
  // https://developers.google.com/identity/protocols/oauth2
  token('google-key', String.raw`(?:GOCSPX-|ya29\.|1//0)`, String.raw`[\w-]{20,}`),
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-prefixes
  token('aws-key', 'A(?:KIA|SIA|BIA|CCA)', '[A-Z0-9]{16}(?![A-Za-z0-9])'),
  // https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
  token('github-token', 'gh[pousr]_', '[A-Za-z0-9]{36,}'),
  token('github-token', 'github_pat_', String.raw`\w{22,}`),
  // https://docs.gitlab.com/security/tokens/#token-prefixes
  token(
    'gitlab-token',
    '(?:gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-|GR1348941)',
    String.raw`[\w-]{20,}(?:\.\w+)*`,
  ),
  // https://docs.slack.dev/authentication/tokens
  token('slack-token', String.raw`x(?:ox[a-z](?:\.xox[a-z])?|app|wfp)-`, '[A-Za-z0-9-]{10,}'),
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
  known(
    'slack-webhook',
    String.raw`hooks\.slack\.com/(?:services|workflows|triggers)/(?<secret>[\w/-]{20,})`,
  ),
  // https://docs.stripe.com/keys
  token('stripe-key', '[sr]k_(?:live|test)_', '[A-Za-z0-9]{16,}'),
  // https://docs.stripe.com/webhooks
  token('stripe-key', 'whsec_', '[A-Za-z0-9+/=]{24,}'),
  // https://huggingface.co/docs/hub/security-tokens
  token('hugging-face-token', 'hf_', '[A-Za-z0-9]{30,}'),
  // https://github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format/
  token('npm-token', 'npm_', '[A-Za-z0-9]{36,}'),
  // https://core.telegram.org/bots/api#authorizing-your-bot. The number is the bot's public id.
  known('telegram-token', String.raw`:(?<=(?:${START}|bot)\d{8,10}:)(?<secret>[\w-]{35})(?![\w-])`),
  // https://docs.discord.com/developers/reference#authentication
  token('discord-token', '[MNO]', String.raw`[\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])`),
  // https://docs.discord.com/developers/resources/webhook
  known('discord-webhook', String.raw`discord(?:app)?\.com/api/webhooks/\d{1,30}/(?<secret>[\w-]{20,})`),
  // https://www.rfc-editor.org/rfc/rfc9110#section-11.6.2
  known(
    'authorization',
    String.raw`authorization(?:\\{0,15}["'])?[ \t]{0,8}[:=,][ \t]{0,8}(?:\\{0,15}["'\u0060])?(?:bearer|basic|token|bot|apikey)[ \t]{1,4}(?<secret>[\w.~+/=-]{6,})`,
    'i',
  ),
  // https://www.rfc-editor.org/rfc/rfc6750#section-2.1
  known(
    'authorization',
    String.raw`\bbearer[ \t]{1,4}(?<secret>(?=[A-Za-z_.~+/-]{0,100}\d)[\w.~+/=-]{20,})`,
    'i',
  ),
  // https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1; databases and brokers are addressed so as well.
  known(
    'url-password',
    String.raw`:\\{0,15}/\\{0,15}/[^\s/?#:@"'\u0060\\<>]{0,200}:(?<secret>[^\s/?#@"'\u0060\\<>[\]{}$][^\s/?#@"'\u0060\\<>[\]{}]{0,255})@`,
  ),
  { name: 'secret', pattern: secretAssignments },
]

/** What begins with a prefix. The prefix comes first in the expression, for that is what V8 looks for fastest. */
function token(name: string, prefix: string, rest: string): SecretPattern {
  return known(name, `${prefix}(?<=${START}${prefix})${rest}`)
}

function known(name: string, source: string, flags = ''): SecretPattern {
  return { name, pattern: new RegExp(source, flags) }
}
