// KafkaJS as a member of a group: see tests/clients/members/__init__.py for what it is given and what it prints.
// It has one assignor, its own round robin, and no static members.

'use strict'

const { createRequire } = require('node:module')
const path = require('node:path')
const readline = require('node:readline')

const modules = process.env.CORELOG_NODE_MODULES ?? path.join(__dirname, '../../../.cache/node/node_modules')
const load = createRequire(path.join(path.resolve(modules), 'here.js'))
const { Kafka, logLevel } = load('kafkajs')

const options = JSON.parse(process.argv[2])
const heartbeatMs = Math.floor(options.session_ms / 6)

const orders = []
let leaves = false
const input = readline.createInterface({ input: process.stdin })
input.on('line', line => (line === 'leave' ? leave() : orders.push(line)))
input.on('close', () => leave())

const kafka = new Kafka({
  clientId: 'member',
  brokers: [options.bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 100 },
})
const consumer = kafka.consumer({
  groupId: options.group,
  sessionTimeout: options.session_ms,
  rebalanceTimeout: options.rebalance_ms,
  heartbeatInterval: heartbeatMs,
  metadataMaxAge: 500,
  maxWaitTimeInMs: 100,
  allowAutoTopicCreation: false,
})

let owned = []
const say = line => process.stdout.write(`${line}\n`)

function owns(places) {
  owned = places.sort()
  say(`owns ${owned.join(' ')}`)
}

async function main() {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const places = Object.entries(payload.memberAssignment)
    owns(places.flatMap(([topic, partitions]) => partitions.map(partition => `${topic}:${partition}`)))
  })
  consumer.on(consumer.events.REBALANCING, () => {
    say(`gave ${owned.join(' ')}`)
    owns([])
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => say(`error ${payload.error}`))
  await consumer.connect()
  await consumer.subscribe({ topics: options.topics, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
}

async function eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  for (let start = 0; start < batch.messages.length; start += options.batch) {
    if (leaves || !isRunning() || isStale()) return
    const slice = batch.messages.slice(start, start + options.batch)
    for (const message of slice) {
      say(`record ${batch.topic} ${batch.partition} ${message.offset} ${message.value}`)
    }
    const last = slice[slice.length - 1].offset
    resolveOffset(last)
    if (!(await mayCommit(heartbeat))) return
    const offset = String(BigInt(last) + 1n)
    try {
      await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }])
    } catch (error) {
      // The next heartbeat brings the same error, where the library deals with it; thrown from here it ends the consumer.
      say(`commit failed ${error.type ?? error.message}`)
      return
    }
    say('committed')
    await heartbeat()
  }
}

async function mayCommit(heartbeat) {
  if (!options.ask) return true
  say('commit?')
  while (!orders.length && !leaves) {
    await heartbeat()
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return orders.shift() === 'commit'
}

async function leave() {
  if (leaves) return
  leaves = true
  await consumer.disconnect()
  say('left')
  process.exit(0)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
