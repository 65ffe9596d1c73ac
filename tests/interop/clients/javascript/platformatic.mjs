// @platformatic/kafka: logins with a token as plain SCRAM, the topics, and records in a group. Its Admin has no calls
// about tokens.
import { Admin, Consumer, Producer, MessagesStreamModes, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import { run } from './exchange.mjs'

function login ({ servers, mechanism, user, password }) {
  return {
    clientId: 'kafka-dt-clients',
    bootstrapBrokers: [servers],
    sasl: { mechanism, username: user, password },
    retries: 2
  }
}

async function topics (settings) {
  const admin = new Admin(login(settings))
  try {
    return await admin.listTopics()
  } finally {
    await admin.close()
  }
}

async function records (settings) {
  const producer = new Producer({ ...login(settings), serializers: stringSerializers })
  const messages = settings.records.map(([key, value]) => ({ topic: settings.topic, key, value }))
  await producer.send({ messages })
  await producer.close()
  const consumer = new Consumer({ ...login(settings), groupId: settings.group, deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: [settings.topic], mode: MessagesStreamModes.EARLIEST })
  const found = []
  for await (const { partition, key, value } of stream) {
    found.push([partition, key, value])
    if (found.length === messages.length) break
  }
  await consumer.close(true)
  return found
}

await run({ topics, records })
