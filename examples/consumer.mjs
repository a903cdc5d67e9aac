// Print the verdicts of nearstream, each once, and take back those about removed documents.
//
// Needs Node.js 20.19 or newer and `npm install @platformatic/kafka`, and nothing of nearstream. The rules are in
// docs/events.md: an id is printed once, a retraction voids the verdicts about earlier states of its document, unknown
// fields and types are passed over.
//
//     node consumer.mjs 127.0.0.1:9092               all verdicts so far, then new ones until Ctrl-C
//     node consumer.mjs 127.0.0.1:9092 --until-end   all verdicts so far
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Consumer } from '@platformatic/kafka'

const MOST = 100_000 // verdicts, and removed documents, that are remembered: later repeats would be printed again
const verdicts = new Map()
const removals = new Map()

// Take one record of the topic, and return the lines that it gives.
function receive(value) {
  const event = JSON.parse(value)
  if (event.type === 'retraction') {
    const key = JSON.stringify([event.collection, event.document_id, event.topic, event.partition])
    remember(removals, key, event)
    const dropped = [...verdicts.values()].filter(each => isVoid(each, event))
    for (const each of dropped) verdicts.delete(each.event_id)
    return dropped.map(each => line('-', each))
  }
  if (event.type !== 'verdict' || verdicts.has(event.event_id)) return []
  if ([...removals.values()].some(removal => isVoid(event, removal))) return []
  remember(verdicts, event.event_id, event)
  return [line('+', event)]
}

// Whether a verdict is about a state of the removed document from before its removal.
function isVoid(verdict, removal) {
  if (verdict.collection !== removal.collection || verdict.id !== removal.document_id) return false
  const isSamePlace = verdict.topic === removal.topic && verdict.partition === removal.partition
  if (isSamePlace && verdict.offset !== undefined && removal.offset !== undefined) {
    return verdict.offset < removal.offset
  }
  return Date.parse(verdict.observed_at) <= Date.parse(removal.removed_at)
}

// Keep a value, and forget the oldest one if there are too many.
function remember(kept, key, value) {
  kept.set(key, value)
  if (kept.size > MOST) kept.delete(kept.keys().next().value)
}

// A line for a verdict: its sign, the verdict, the document, and the one that it is a copy of.
function line(sign, verdict) {
  return [sign, verdict.verdict, verdict.id, verdict.of?.id ?? ''].join('\t')
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { topic: { type: 'string', default: 'nearstream.verdicts.v1' }, 'until-end': { type: 'boolean' } }
})
const topic = options.topic
const consumer = new Consumer({
  clientId: 'nearstream-example',
  groupId: `nearstream-example-${randomUUID()}`, // one of its own, so that every run reads all partitions from the start
  bootstrapBrokers: [positionals[0] ?? '127.0.0.1:9092']
})
const [starts, ends] = await Promise.all(
  [-2n, -1n].map(async timestamp => (await consumer.listOffsets({ topics: [topic], timestamp })).get(topic))
)
const left = new Set([...ends.keys()].filter(partition => starts[partition] < ends[partition]))
if (left.size > 0 || !options['until-end']) {
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: false })
  for await (const message of stream) {
    for (const text of receive(message.value.toString())) console.log(text)
    if (message.offset >= ends[message.partition] - 1n) left.delete(message.partition)
    if (options['until-end'] && left.size === 0) break
  }
}
await consumer.close(true)
