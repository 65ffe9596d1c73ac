import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's Java producer and consumers behind a pipe, as ReferenceClient.java is: one JSON request a line, one answer a
 * line. Record n has the key "n" and the value "n:" + SHA-256 of "n". Started from source by
 * tests/support/java/records_client.py, which documents the requests.
 */
public class RecordsClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    /** So many records are sent before the next look at the clock. */
    private static final int BURST = 10;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        // The threads of clients that cannot reach their server must not keep this process.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("result", perform(request));
        } catch (Exception failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            answer.put("error", cause.getClass().getSimpleName());
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        return answer;
    }

    private static Object perform(JsonNode request) throws Exception {
        Map<String, Object> config = JSON.convertValue(request.get("config"), Map.class);
        switch (request.get("operation").asText()) {
            case "send":
                return send(config, request);
            case "read":
                return read(config, request);
            case "share":
                return share(config, request);
            case "transact":
                return transact(config, request);
            case "copy":
                return copy(config, request);
            default:
                throw new IllegalArgumentException("unknown operation " + request.get("operation"));
        }
    }

    /** Sends records, at a steady pace if one is asked for; says what that took. */
    private static Object send(Map<String, Object> config, JsonNode request) throws Exception {
        try (KafkaProducer<String, String> producer = producer(config)) {
            Map<String, Object> sent = new LinkedHashMap<>();
            sent.put("acknowledged", sendAll(producer, request));
            sent.put("connections", total(producer, "connection-creation-total"));
            sent.put("logins_again", total(producer, "successful-reauthentication-total"));
            return sent;
        }
    }

    private static long total(KafkaProducer<String, String> producer, String name) {
        for (Metric metric : producer.metrics().values()) {
            if (metric.metricName().name().equals(name) && metric.metricName().group().equals("producer-metrics")) {
                return ((Double) metric.metricValue()).longValue();
            }
        }
        throw new IllegalStateException("no metric " + name);
    }

    /** One transaction, which is committed or aborted; gives how many records it had. */
    private static int transact(Map<String, Object> config, JsonNode request) throws Exception {
        try (KafkaProducer<String, String> producer = producer(config)) {
            producer.initTransactions();
            producer.beginTransaction();
            int sent = sendAll(producer, request);
            if (request.get("commit").asBoolean()) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
            return sent;
        }
    }

    /** Copies records to another topic, each batch and the group's offsets in one transaction. */
    private static int copy(Map<String, Object> config, JsonNode request) throws Exception {
        int wanted = request.get("count").asInt();
        int copied = 0;
        long end = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000;
        try (KafkaProducer<String, String> producer = producer(config);
                KafkaConsumer<String, String> consumer = consumer(config)) {
            producer.initTransactions();
            consumer.subscribe(List.of(request.get("topic").asText()));
            while (copied < wanted && System.nanoTime() < end) {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    producer.send(new ProducerRecord<>(request.get("target").asText(), record.key(), record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    copied++;
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
        }
        return copied;
    }

    /** Reads until it has enough records, in a group or all partitions from their beginnings; says what they were. */
    private static Object read(Map<String, Object> config, JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        Found found = new Found(request);
        try (KafkaConsumer<String, String> consumer = consumer(config)) {
            if (config.containsKey("group.id")) {
                consumer.subscribe(List.of(topic));
            } else {
                List<TopicPartition> partitions = new ArrayList<>();
                for (PartitionInfo each : consumer.partitionsFor(topic)) {
                    partitions.add(new TopicPartition(topic, each.partition()));
                }
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
            }
            while (found.wantsMore()) {
                found.add(consumer.poll(POLL));
            }
            if (config.containsKey("group.id")) {
                consumer.commitSync();
            }
        }
        return found.summary();
    }

    /** Reads in a share group until it has enough records, and acknowledges them; says what they were. */
    private static Object share(Map<String, Object> config, JsonNode request) throws Exception {
        Found found = new Found(request);
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(request.get("topic").asText()));
            while (found.wantsMore()) {
                found.add(consumer.poll(POLL));
                for (Optional<KafkaException> failure : consumer.commitSync().values()) {
                    if (failure.isPresent()) {
                        throw failure.get();
                    }
                }
            }
        }
        return found.summary();
    }

    /** The records that were found, as many as were asked for in the time that was given. */
    private static class Found {
        private final int wanted;
        private final long end;
        private final Map<Integer, String> values = new TreeMap<>();
        private final Map<Integer, Integer> lastOf = new HashMap<>();
        private int total = 0;
        private int outOfOrder = 0;

        Found(JsonNode request) {
            wanted = request.get("count").asInt();
            end = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000;
        }

        boolean wantsMore() {
            return total < wanted && System.nanoTime() < end;
        }

        void add(Iterable<ConsumerRecord<String, String>> records) {
            for (ConsumerRecord<String, String> record : records) {
                int number = Integer.parseInt(record.key());
                Integer last = lastOf.put(record.partition(), number);
                outOfOrder += last != null && last >= number ? 1 : 0;
                values.put(number, record.value());
                total++;
            }
        }

        Object summary() throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (String value : values.values()) {
                digest.update(value.getBytes(StandardCharsets.UTF_8));
            }
            Map<String, Object> summary = new LinkedHashMap<>();
            summary.put("total", total);
            summary.put("distinct", values.size());
            summary.put("out_of_order", outOfOrder);
            summary.put("partitions", lastOf.size());
            summary.put("digest", HexFormat.of().formatHex(digest.digest()));
            return summary;
        }
    }

    private static int sendAll(KafkaProducer<String, String> producer, JsonNode request) throws Exception {
        Path until = request.hasNonNull("until") ? Path.of(request.get("until").asText()) : null;
        String topic = request.get("topic").asText();
        int first = request.get("first").asInt();
        int count = request.get("count").asInt();
        long perSecond = request.get("per_second").asLong();
        List<Future<RecordMetadata>> sent = new ArrayList<>(count);
        long start = System.nanoTime();
        for (int number = first; number < first + count; number++) {
            if (until != null && number % BURST == 0 && Files.exists(until)) {
                break;
            }
            if (perSecond > 0 && number % BURST == 0) {
                LockSupport.parkNanos(start + (number - first) * 1_000_000_000L / perSecond - System.nanoTime());
            }
            sent.add(producer.send(new ProducerRecord<>(topic, String.valueOf(number), value(number))));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
        return sent.size();
    }

    private static String value(int number) throws Exception {
        byte[] text = String.valueOf(number).getBytes(StandardCharsets.UTF_8);
        return number + ":" + HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text));
    }

    private static KafkaProducer<String, String> producer(Map<String, Object> config) {
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(Map<String, Object> config) {
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }
}
