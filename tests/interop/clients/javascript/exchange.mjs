// How a test asks a client program: the action is its argument, the settings are JSON on its standard input, and the
// answer is JSON on its standard output. A failure is a line on standard error.
import { text } from 'node:stream/consumers'

const WITHIN_MS = 30_000

export async function run (actions) {
  setTimeout(() => fail('no end within 30 s'), WITHIN_MS).unref()
  try {
    const settings = JSON.parse(await text(process.stdin))
    const answer = await actions[process.argv[2]](settings)
    process.stdout.write(JSON.stringify(answer), () => process.exit(0))
  } catch (error) {
    fail(error)
  }
}

function fail (error) {
  process.stderr.write(`${error.message ?? error}\n`, () => process.exit(1))
}
