import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Redactor, redact, redactJson, redactRecord } from '../../src/index.ts'

// Put together here, so that no scanner takes this file for a leak.
const filler = (length: number) => 'aB3dE6gH9'.repeat(40).slice(0, length)
const github = `ghp_${filler(36)}`

const credentials: [name: string, secret: string][] = [
  ['anthropic-key', `sk-ant-api03-${filler(80)}-AA`],
  ['openrouter-key', `sk-or-v1-${'0a1b'.repeat(16)}`],
  ['openai-key', `sk-proj-${filler(60)}_${filler(60)}`],
  ['openai-key', `sk-${filler(48)}`],
  ['groq-key', `gsk_${filler(52)}`],
  ['xai-key', `xai-${filler(80)}`],
  ['google-key', `AIza${filler(35)}`],
  ['google-key', `GOCSPX-${filler(28)}`],
  ['aws-key', `AKIA${'ABCD2345'.repeat(2)}`],
  ['github-token', github],
  ['github-token', `github_pat_${filler(22)}_${filler(59)}`],
  ['gitlab-token', `glpat-${filler(20)}`],
  ['slack-token', `xoxb-123456789012-${filler(24)}`],
  ['stripe-key', `sk_live_${filler(24)}`],
  ['hugging-face-token', `hf_${filler(34)}`],
  ['npm-token', `npm_${filler(36)}`],
  ['discord-token', `MTIz${filler(22)}.${filler(6)}.${filler(38)}`],
  ['jwt', `eyJ${filler(20)}.eyJ${filler(30)}.${filler(43)}`],
]

describe('credentials', () => {
  test.each(credentials)('%s', (name, secret) => {
    const mask = `[redacted:${name}]`
    for (const [before, after] of [
      ['', ''],
      ['use ', ' now'],
      ['(', ').'],
      ['"', '"'],
      ['line\\n', '\\nline'],
      ['https://a.b/?k%3D', '&x=1'],
      ['\u001b[32m', '\u001b[0m'],
    ])
      expect(redact(`${before}${secret}${after}`)).toEqual({
        text: `${before}${mask}${after}`,
        counts: { [name]: 1 },
      })
  })

  test.each<[text: string, expected: string]>([
    [
      `https://api.telegram.org/bot123456789:${filler(35)}/getMe`,
      'https://api.telegram.org/bot123456789:[redacted:telegram-token]/getMe',
    ],
    [
      `https://hooks.slack.com/services/T0001/B0001/${filler(24)}`,
      'https://hooks.slack.com/services/[redacted:slack-webhook]',
    ],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic [redacted:authorization]'],
    [`-H "authorization: bearer ${filler(12)}"`, '-H "authorization: bearer [redacted:authorization]"'],
    ['{"Authorization": "Bearer abc123"}', '{"Authorization": "Bearer [redacted:authorization]"}'],
    ['postgres://joe:s3c:ret@db:5432/app', 'postgres://joe:[redacted:url-password]@db:5432/app'],
    ['redis://:pw@host', 'redis://:[redacted:url-password]@host'],
    ['Server=db;User=sa;Password=hunter2;', 'Server=db;User=sa;Password=[redacted:secret];'],
    ['export AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG', 'export AWS_SECRET_ACCESS_KEY=[redacted:secret]'],
    ['aws_secret_access_key = wJalr/K7MDENG', 'aws_secret_access_key = [redacted:secret]'],
    ["api_key = 'it\\'s'", "api_key = '[redacted:secret]'"],
    ['{"password": "a \\"b\\" c", "n": 1}', '{"password": "[redacted:secret]", "n": 1}'],
    ['password: hunter2\nnext', 'password: [redacted:secret]\nnext'],
    ['mysql --password=hunter', 'mysql --password=[redacted:secret]'],
    ['tool --api-key abc123 run', 'tool --api-key [redacted:secret] run'],
    ['["--password", "hunter"]', '["--password", "[redacted:secret]"]'],
    [`?access_token=${filler(20)}&x=1`, '?access_token=[redacted:secret]&x=1'],
  ])('%s', (text, expected) => {
    expect(redact(text).text).toBe(expected)
  })

  test('a private key, whole or broken off, and none of the text around it', () => {
    const line = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
    const key = `-----BEGIN RSA PRIVATE KEY-----\n${line}\n${line}==\n-----END RSA PRIVATE KEY-----`
    expect(redact(`a\n${key}\nb`).text).toBe('a\n[redacted:private-key]\nb')
    expect(redact(JSON.stringify({ key })).text).toBe('{"key":"[redacted:private-key]"}')
    expect(redact(`a\n-----BEGIN PRIVATE KEY-----\n${line}\n${line}\n\nb`).text).toBe(
      'a\n[redacted:private-key]\n\nb',
    )
  })

  test('a secret that two patterns find is one, named by its kind', () => {
    expect(redact(`GITHUB_TOKEN=${github}`)).toEqual({
      text: 'GITHUB_TOKEN=[redacted:github-token]',
      counts: { 'github-token': 1 },
    })
    expect(redact(`"password": "x ${github} y"`).text).toBe('"password": "[redacted:github-token]"')
  })

  test.each([
    'commit da39a3ee5e6b4b0d3255bfef95601890afd80709',
    'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'id 3f2504e0-4f89-11d3-9a0c-0305e82c3301',
    `data:image/png;base64,${filler(300)}+/${filler(50)}==`,
    'max_tokens=4096, "token": "the", page_token = None',
    'const token = getToken(); password = input("Password: ")',
    'api_key=os.environ["KEY"], password: string, secret = $SECRET',
    '["PASSWORD=", "x"] {"cmd":"PASSWORD=","n":1}',
    'task-force-sk-learn risk-based the password is secret',
    'http://localhost:8080/a@b https://example.com/?q=a:b',
    'At 1612345678: the quick brown fox jumps over it',
    '',
  ])('stays: %s', (text) => {
    expect(redact(text)).toEqual({ text, counts: {} })
  })

  test('what is masked stays as it is when it is masked again', () => {
    const text = [
      ...credentials.map(([, secret]) => `A_SECRET=${secret}`),
      'a://b:c@d',
      '"password":"x"',
      'Authorization: Bearer abcdefgh12345678901234',
    ].join('\n')
    const once = redact(text).text
    expect(redact(once)).toEqual({ text: once, counts: {} })
  })
})

describe('JSON', () => {
  test.each([1, 2, 3])('text %i deep in JSON text is masked, and stays JSON', (depth) => {
    let text = JSON.stringify({ command: `echo\n${github}`, password: 'a "b" \\', "it's": 'ok' })
    for (let n = 1; n < depth; n++) text = JSON.stringify({ text, after: '"' })
    let value = JSON.parse(redact(text).text)
    for (let n = 1; n < depth; n++) {
      expect(value.after).toBe('"')
      value = JSON.parse(value.text)
    }
    expect(value).toEqual({
      command: 'echo\n[redacted:github-token]',
      password: '[redacted:secret]',
      "it's": 'ok',
    })
  })

  test('whatever is around a secret, JSON text stays JSON text', () => {
    const piece = fc.oneof(
      fc.string({ unit: fc.constantFrom('"', "'", '`', '\\', '\n', ':', '=', ',', '}', ' ', 'a', '1') }),
      fc.constantFrom(
        'PASSWORD=',
        '"secret": "',
        "api_key='",
        '--token ',
        'x://y:z@',
        github,
        'Bearer abc123',
      ),
      fc.constantFrom('-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----'),
    )
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(fc.dictionary(text, fc.array(text)), fc.boolean(), (value, twice) => {
        const json = JSON.stringify(twice ? JSON.stringify(value) : value)
        const masked = JSON.parse(redact(json).text)
        if (twice) JSON.parse(masked)
      }),
      { numRuns: 2000 },
    )
  })

  test('a value keeps its shape; texts, names and what a name tells are masked', () => {
    const redactor = new Redactor()
    const value = {
      api_key: 'short',
      password: null,
      tokens: 12,
      nested: [{ note: github, [github]: true, [`ghp_${filler(37)}`]: false }],
    }
    const copy: typeof value = redactJson(value, redactor)
    expect(copy).toEqual({
      api_key: '[redacted:secret]',
      password: null,
      tokens: 12,
      nested: [
        {
          note: '[redacted:github-token]',
          '[redacted:github-token]': true,
          '[redacted:github-token]_': false,
        },
      ],
    })
    expect(redactor.counts).toEqual({ secret: 1, 'github-token': 3 })
    expect(value.api_key).toBe('short')
  })

  test('a record is masked in all its texts but its ids, and counted', () => {
    const call = { id: 'c', type: 'function', function: { name: 'sh', arguments: `{"token":"${github}"}` } }
    const session = {
      id: github,
      title: `Rotate ${github}`,
      system_prompt: 'PASSWORD=hunter2',
      model_config: { api_key: 'k', temperature: 0.5 },
      billing_base_url: 'https://me:pw@proxy',
      started_at: 5,
      messages: [
        { role: 'user', content: [{ type: 'text', text: github }], tool_calls: null },
        {
          role: 'assistant',
          content: null,
          tool_calls: [call],
          reasoning: github,
          reasoning_details: [{ text: github }],
        },
      ],
    }
    const redactor = new Redactor()
    redactor.redact(github)
    const { record, counts } = redactRecord(session, redactor)
    const mask = '[redacted:github-token]'
    expect(record).toEqual({
      id: github,
      title: `Rotate ${mask}`,
      system_prompt: 'PASSWORD=[redacted:secret]',
      model_config: { api_key: '[redacted:secret]', temperature: 0.5 },
      billing_base_url: 'https://me:[redacted:url-password]@proxy',
      started_at: 5,
      messages: [
        { role: 'user', content: [{ type: 'text', text: mask }], tool_calls: null },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ ...call, function: { name: 'sh', arguments: `{"token":"${mask}"}` } }],
          reasoning: mask,
          reasoning_details: [{ text: mask }],
        },
      ],
    })
    expect(counts).toEqual({ 'github-token': 5, secret: 2, 'url-password': 1 })
    expect(redactor.counts['github-token']).toBe(6)
  })
})

describe('patterns of your own', () => {
  test('regular expressions and functions, which name what they share with others', () => {
    const patterns = [
      { name: 'badge', pattern: /\bemp-\d{6}\b/i },
      { name: 'pin', pattern: /PIN (?<secret>\d{4})/ },
      {
        name: 'ours',
        pattern: (text: string) => [[text.indexOf('ghp_'), text.length]] as [number, number][],
      },
    ]
    expect(redact(`EMP-123456, emp-000001, PIN 0000: ${github}`, { patterns })).toEqual({
      text: '[redacted:badge], [redacted:badge], PIN [redacted:pin]: [redacted:ours]',
      counts: { badge: 2, pin: 1, ours: 1 },
    })
  })

  test.each<[options: unknown, message: RegExp]>([
    [{ patterns: {} }, /^patterns must be an array/],
    [{ patterns: [/x/] }, /^patterns\[0\]\.name must be/],
    [{ patterns: [{ name: 'a"b', pattern: /x/ }] }, /^patterns\[0\]\.name must be/],
    [{ patterns: [{ name: 'a', pattern: 'x' }] }, /^patterns\[0\]\.pattern must be/],
    [{ patterns: [{ name: 'a', pattern: () => [[0, 9]] }] }, /^The pattern 'a' gave the place 0 to 9/],
  ])('are refused: %j', (options, message) => {
    const call = () => Reflect.apply(redact, undefined, ['text', options])
    expect(call).toThrow(TypeError)
    expect(call).toThrow(message)
  })

  test('no text is refused', () => {
    expect(() => Reflect.apply(redact, undefined, [null])).toThrow(/^The text to redact must be a string/)
    expect(() => Reflect.apply(redactRecord, undefined, ['x', new Redactor()])).toThrow(/^The record must be/)
  })
})

// In time that grew with the square of the length, one of these would take minutes.
test.each([
  'a',
  '-',
  '\\',
  '"',
  ' ',
  'sk-',
  'sk-ant-',
  '-eyJ',
  'eyJaaaaaaaaaaa.',
  'ghp_',
  'glpat-aaaaaaaaaaaaaaaaaaaa.',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----\n',
  '-----BEGIN A A PRIVATE KEY-----aaaaaaaaaaaaaaaa\n',
  '://a:',
  'a:',
  'xoxb-',
  'xoxb.xoxb-',
  'password="',
  "password='",
  'password=\\"',
  'password ',
  '--token ',
  'authorization: ',
  'bearer a',
  'MNO.',
  '123456789:',
  '[0;[0;',
  'm%20',
])('a text of a million times %j is searched', (piece) => {
  expect(typeof redact(piece.repeat(1_000_000 / piece.length)).text).toBe('string')
})
