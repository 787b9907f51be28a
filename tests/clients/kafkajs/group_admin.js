// KafkaJS's admin client on a group that has one member, and then none: see tests/clients/group_scenarios/of_tools.py.

'use strict'

const assert = require('node:assert')
const { createRequire } = require('node:module')
const path = require('node:path')

const modules = process.env.CORELOG_NODE_MODULES ?? path.join(__dirname, '../../../.cache/node/node_modules')
const load = createRequire(path.join(path.resolve(modules), 'here.js'))
const { Kafka, logLevel, AssignerProtocol } = load('kafkajs')

const [bootstrap, groupId, topic] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'admin', brokers: [bootstrap], logLevel: logLevel.NOTHING })

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  const { groups } = await admin.listGroups()
  assert(groups.some(g => g.groupId === groupId && g.protocolType === 'consumer'), 'the group is listed')
  const [described] = (await admin.describeGroups([groupId])).groups
  assert.equal(described.state, 'Stable')
  const { assignment } = AssignerProtocol.MemberAssignment.decode(described.members[0].memberAssignment)
  assert.deepEqual({ ...assignment }, { [topic]: [0, 1] })
  console.log('seen with its member')
  await new Promise(resolve => process.stdin.once('data', resolve))
  assert.equal((await admin.describeGroups([groupId])).groups[0].state, 'Empty')
  const offsets = async () => {
    const [fetched] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return fetched.partitions.map(p => Number(p.offset))
  }
  assert.deepEqual(await offsets(), [20, 20])
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 1, offset: '7' }] })
  assert.deepEqual(await offsets(), [20, 7])
  await admin.resetOffsets({ groupId, topic, earliest: true })
  await admin.deleteGroups([groupId])
  assert(!(await admin.listGroups()).groups.some(g => g.groupId === groupId), 'the deleted group is not listed')
  await admin.disconnect()
  process.exit(0)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
