/**
 * An amount without the noise of adding binary fractions: ten times 0.1 is 1, not 0.9999999999999999. Twelve
 * digits are kept, a millionth of a cent on ten thousand dollars.
 */
export function dollars(amount: number): number {
  return Number(amount.toPrecision(12))
}
