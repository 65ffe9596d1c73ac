// kafkajs: logins with a token as plain SCRAM, the topics, and records in a group. It has no calls about tokens.
import kafkajs from 'kafkajs'
import { run } from './exchange.mjs'

function connect ({ servers, mechanism, user, password }) {
  return new kafkajs.Kafka({
    brokers: [servers],
    sasl: { mechanism: mechanism.toLowerCase(), username: user, password },
    logLevel: kafkajs.logLevel.ERROR,
    retry: { retries: 2 }
  })
}

async function topics (settings) {
  const admin = connect(settings).admin()
  await admin.connect()
  try {
    return await admin.listTopics()
  } finally {
    await admin.disconnect()
  }
}

async function records (settings) {
  const kafka = connect(settings)
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: settings.topic, messages: settings.records.map(([key, value]) => ({ key, value })) })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: settings.group })
  await consumer.connect()
  await consumer.subscribe({ topic: settings.topic, fromBeginning: true })
  const found = []
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    const eachMessage = async ({ partition, message }) => {
      found.push([partition, message.key.toString(), message.value.toString()])
      if (found.length === settings.records.length) resolve()
    }
    consumer.run({ eachMessage }).catch(reject)
  })
  await consumer.disconnect()
  return found
}

await run({ topics, records })
