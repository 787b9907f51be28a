// The KafkaJS suite: see tests/clients/suites/__init__.py for what a suite is given and what it prints.
//
// KafkaJS consumes only as a member of a consumer group. Until the broker has groups, this reads with KafkaJS's own
// cluster, fetch protocol and batch code, which its consumer stands on, but without the group above them.

'use strict'

const fs = require('node:fs')
const { createRequire } = require('node:module')
const path = require('node:path')

// The packages lie in .cache/node of the checkout, or wherever CORELOG_NODE_MODULES says.
const modules = process.env.CORELOG_NODE_MODULES ?? path.join(__dirname, '../../../.cache/node/node_modules')
const load = createRequire(path.join(path.resolve(modules), 'here.js'))
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = load('kafkajs')
const Batch = load('kafkajs/src/consumer/batch')
const lz4 = load('lz4-napi')
const snappy = load('kafkajs-snappy')
const zstd = load('@bokuweb/zstd-wasm')

// KafkaJS brings gzip; a codec turns the encoded records into bytes and back.
const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(decompress(buffer)),
})
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compressFrameSync, lz4.decompressFrameSync)
CompressionCodecs[CompressionTypes.ZSTD] = codec(zstd.compress, zstd.decompress)

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
const TIMEOUT_MS = 60_000

const [bootstrap, corpusPath, prefix] = process.argv.slice(2)
const corpus = JSON.parse(fs.readFileSync(corpusPath))
const bytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const records = corpus.records.map(r => ({
  ...r,
  key: bytes(r.key),
  value: bytes(r.value),
  // It cannot send a header without a value, and it keeps the headers of one name together.
  headers: group(r.headers.map(([name, value]) => [name, bytes(value) ?? Buffer.alloc(0)])),
}))
const inPartition = partition => records.filter(r => r.partition === partition)
const topicOf = name => `${prefix}-${name}`

const kafka = new Kafka({ clientId: 'suite', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
const createCluster = Object.getOwnPropertySymbols(kafka).find(s => s.description === 'private:Kafka:createCluster')

async function main() {
  await zstd.init()
  const admin = kafka.admin()
  await admin.connect()
  const cluster = kafka[createCluster]({ isolationLevel: 1 })
  await cluster.connect()

  await check('cluster is described', async () => {
    const { brokers, controller, clusterId } = await admin.describeCluster()
    expect(brokers.map(b => `${b.host}:${b.port}`), [bootstrap], 'brokers')
    expect(controller, brokers[0].nodeId, 'controller')
    expect(Boolean(clusterId), true, 'there is a cluster id')
  })
  for (const [name, compression] of Object.entries(CODECS)) {
    const topic = topicOf(name)
    await check(`${name}: create topic`, async () => {
      const created = await admin.createTopics({ topics: [{ topic, numPartitions: corpus.partitions }] })
      expect(created, true, 'created')
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      expect(topics[0].partitions.length, corpus.partitions, 'partitions')
    })
    await check(`${name}: produce with the idempotent producer`, () => produce(topic, compression))
    await cluster.addTargetTopic(topic)
    await check(`${name}: read back every byte`, async () => {
      for (let partition = 0; partition < corpus.partitions; partition++) {
        expectSame(await read(cluster, topic, partition, 0), inPartition(partition))
      }
    })
    await check(`${name}: seek by offset`, async () => {
      for (const { partition, offset } of corpus.by_offset) {
        expectSame(await read(cluster, topic, partition, offset), inPartition(partition).slice(offset))
      }
    })
    await check(`${name}: seek by time`, async () => {
      for (const { partition, timestamp, offset } of corpus.by_time) {
        const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
        // It gives the end of the partition where no record is late enough.
        const want = offset === -1 ? inPartition(partition).length : offset
        expect(Number(found.find(f => f.partition === partition).offset), want, `offset for ${timestamp}`)
      }
    })
    await check(`${name}: earliest and latest`, async () => {
      for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
        expect([Number(low), Number(high)], [0, inPartition(partition).length], `ends of ${partition}`)
      }
    })
  }
  await check('a topic that exists is reported', async () => {
    expect(await admin.createTopics({ topics: [{ topic: topicOf('none') }] }), false, 'created')
  })
  await check('partitions are added', async () => {
    await admin.createPartitions({ topicPartitions: [{ topic: topicOf('gzip'), count: corpus.partitions + 1 }] })
    await eventually(async () => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topicOf('gzip')] })
      return topics[0].partitions.length === corpus.partitions + 1
    })
  })
  await check('settings are described and altered', async () => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topicOf('none') }
    const valueOf = async name => {
      const { resources } = await admin.describeConfigs({ resources: [resource] })
      return resources[0].configEntries.find(entry => entry.configName === name).configValue
    }
    expect(await valueOf('segment.bytes'), '1073741824', 'segment.bytes')
    await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '7200000' }] }] })
    await eventually(async () => (await valueOf('retention.ms')) === '7200000')
  })
  await check('records are deleted up to an offset', async () => {
    const topic = topicOf('zstd')
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 2, offset: '25' }] })
    const offsets = await admin.fetchTopicOffsets(topic)
    expect(Number(offsets.find(o => o.partition === 2).low), 25, 'earliest')
    expectSame(await read(cluster, topic, 2, 25), inPartition(2).slice(25))
  })
  await check('transactions work or are refused for good', async () => {
    // A coordinator that is only not there yet would be asked for until the retries are over.
    const producer = kafka.producer({ transactionalId: topicOf('tx'), idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    try {
      const transaction = await producer.transaction()
      await transaction.abort()
    } catch (error) {
      expect([error.name, error.retriable], ['KafkaJSGroupCoordinatorNotFound', false], 'error')
    } finally {
      await producer.disconnect()
    }
  })
  await check('topics are deleted', async () => {
    const topics = Object.keys(CODECS).map(topicOf)
    await admin.deleteTopics({ topics })
    await eventually(async () => {
      const listed = await admin.listTopics()
      return !topics.some(topic => listed.includes(topic))
    })
  })
  await cluster.disconnect()
  await admin.disconnect()
  console.log('done')
}

async function produce(topic, compression) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner: () => ({ message }) => message.partition })
  await producer.connect()
  try {
    // One send is one batch per partition: several, so that there are batch ends to seek over.
    const next = new Map()
    for (let start = 0; start < records.length; start += 50) {
      const slice = records.slice(start, start + 50)
      const messages = slice.map(r => ({ ...r, timestamp: String(r.timestamp) }))
      for (const ack of await producer.send({ topic, acks: -1, compression, messages })) {
        expect(Number(ack.baseOffset), next.get(ack.partition) ?? 0, `first offset acknowledged in ${ack.partition}`)
        next.set(ack.partition, Number(ack.baseOffset) + slice.filter(r => r.partition === ack.partition).length)
      }
    }
  } finally {
    await producer.disconnect()
  }
}

async function read(cluster, topic, partition, offset) {
  const [found] = await cluster.fetchTopicsOffset([{ topic, partitions: [{ partition }], fromBeginning: false }])
  const end = Number(found.partitions[0].offset)
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
  const broker = await cluster.findBroker({ nodeId })
  const got = []
  const deadline = Date.now() + TIMEOUT_MS
  while (offset < end) {
    if (Date.now() > deadline) {
      throw new Error(`the end of partition ${partition} was not reached, ${got.length} records read`)
    }
    const { responses } = await broker.fetch({
      maxWaitTime: 100,
      minBytes: 1,
      maxBytes: 1_000_000,
      isolationLevel: 1,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes: 100_000 }] }],
    })
    const batch = new Batch(topic, String(offset), responses[0].partitions[0])
    for (const message of batch.messages) {
      got.push({
        partition,
        offset: Number(message.offset),
        timestamp: Number(message.timestamp),
        key: message.key,
        value: message.value,
        headers: message.headers,
      })
      offset = Number(message.offset) + 1
    }
  }
  return got
}

function expectSame(got, want) {
  expect(got.length, want.length, 'number of records')
  got.forEach((g, i) => {
    for (const field of ['partition', 'offset', 'timestamp', 'key', 'value', 'headers']) {
      expect(g[field], want[i][field], `${field} at partition ${want[i].partition} offset ${want[i].offset}`)
    }
  })
}

// Several headers of one name become an array under it, as KafkaJS has them.
function group(pairs) {
  const headers = {}
  for (const [name, value] of pairs) {
    headers[name] = name in headers ? [headers[name], value].flat() : value
  }
  return headers
}

async function check(name, body) {
  try {
    await body()
    console.log(`ok ${name}`)
  } catch (error) {
    console.log(`not ok ${name} # ${error.name}: ${error.message}`.replaceAll('\n', ' '))
  }
}

function expect(got, want, what) {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)]
  if (g !== w) {
    throw new Error(`${what}: ${String(g).slice(0, 100)}, wanted ${String(w).slice(0, 100)}`)
  }
}

// For what a broker may do a moment after its answer, as Kafka does.
async function eventually(condition) {
  const deadline = Date.now() + TIMEOUT_MS
  while (!(await condition())) {
    if (Date.now() > deadline) {
      throw new Error('it did not come about in time')
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
