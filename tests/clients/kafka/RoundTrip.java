import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer, consumer (with assign, so without a group) and admin client. See tests/clients/suites/__init__.py
 * for what a suite is given and what it prints.
 */
public final class RoundTrip {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

    private record Expected(
            int partition, long offset, long timestamp, byte[] key, byte[] value, List<Header> headers) {}

    private record Lookup(int partition, long timestamp, long offset) {}

    private interface Body {
        void run() throws Exception;
    }

    private final String bootstrap;
    private final String prefix;
    private final Admin admin;
    private final int partitions;
    private final List<Expected> records = new ArrayList<>();
    private final List<Lookup> byTime = new ArrayList<>();
    private final List<Lookup> byOffset = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 3) {
            throw new IllegalArgumentException("RoundTrip BOOTSTRAP CORPUS_JSON TOPIC_PREFIX");
        }
        new RoundTrip(arguments[0], new ObjectMapper().readTree(new File(arguments[1])), arguments[2]).run();
        System.out.println("done");
    }

    private RoundTrip(String bootstrap, JsonNode corpus, String prefix) throws Exception {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        this.partitions = corpus.get("partitions").asInt();
        for (JsonNode r : corpus.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : r.get("headers")) {
                headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
            }
            records.add(
                    new Expected(
                            r.get("partition").asInt(),
                            r.get("offset").asLong(),
                            r.get("timestamp").asLong(),
                            bytes(r.get("key")),
                            bytes(r.get("value")),
                            headers));
        }
        for (JsonNode lookup : corpus.get("by_time")) {
            byTime.add(
                    new Lookup(
                            lookup.get("partition").asInt(),
                            lookup.get("timestamp").asLong(),
                            lookup.get("offset").asLong()));
        }
        for (JsonNode seek : corpus.get("by_offset")) {
            byOffset.add(new Lookup(seek.get("partition").asInt(), 0, seek.get("offset").asLong()));
        }
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private void run() throws Exception {
        for (String codec : CODECS) {
            String topic = topic(codec);
            check(codec + ": create topic", () -> createTopic(topic));
            check(codec + ": produce with the idempotent producer", () -> produce(topic, codec));
            try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
                check(codec + ": read back every byte", () -> readAll(consumer, topic));
                check(codec + ": seek by offset", () -> seekByOffset(consumer, topic));
                check(codec + ": seek by time", () -> seekByTime(consumer, topic));
                check(codec + ": earliest and latest", () -> ends(consumer, topic));
            }
            check(codec + ": offset of the largest timestamp", () -> maxTimestamp(topic));
        }
        check("a topic that exists is refused", () -> expectError(TopicExistsException.class, () -> createTopic(topic("none"))));
        check("a bad topic name is refused", () -> expectError(InvalidTopicException.class, () -> createTopic("a/b")));
        check("a record above max.message.bytes is refused", () -> tooLarge(topic("none")));
        check("acks=0 and acks=1 reach the log", () -> weakerAcks(topic("acks")));
        check("an offset out of range is reported", () -> outOfRange(topic("none")));
        check("the active producers of a partition are described", () -> describeProducers(topic("none")));
        check("records are deleted up to an offset", () -> deleteRecords(topic("snappy")));
        check("transactions work or are refused for good", this::transactions);
        check("topics are deleted", this::deleteTopics);
        admin.close();
    }

    private String topic(String name) {
        return prefix + "-" + name;
    }

    private void createTopic(String topic) throws Exception {
        await(admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all());
        TopicDescription description = await(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic);
        expect(description.partitions().size(), partitions, "partitions");
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        settings.put("linger.ms", 20);
        settings.putAll(more);
        return new KafkaProducer<>(settings);
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        return new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", bootstrap,
                        "key.deserializer", ByteArrayDeserializer.class,
                        "value.deserializer", ByteArrayDeserializer.class,
                        "auto.offset.reset", "none",
                        // A seek waits for the fetch before it, which at the end of a partition is a long poll.
                        "fetch.max.wait.ms", 20,
                        "enable.auto.commit", false));
    }

    /** Idempotence and acks=all are the producer's defaults; they are named so that they stay on. */
    private void produce(String topic, String codec) throws Exception {
        Map<String, Object> settings = Map.of("compression.type", codec, "enable.idempotence", true, "acks", "all");
        Map<Expected, Future<RecordMetadata>> sent = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            for (Expected r : records) {
                sent.put(
                        r,
                        producer.send(
                                new ProducerRecord<>(topic, r.partition, r.timestamp, r.key, r.value, r.headers)));
            }
        }
        for (Map.Entry<Expected, Future<RecordMetadata>> entry : sent.entrySet()) {
            RecordMetadata ack = entry.getValue().get();
            expect(ack.partition(), entry.getKey().partition, "partition of the acknowledgement");
            expect(ack.offset(), entry.getKey().offset, "offset of the acknowledgement");
            expect(ack.timestamp(), entry.getKey().timestamp, "timestamp of the acknowledgement");
        }
    }

    private void readAll(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> places =
                IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList());
        consumer.assign(places);
        consumer.seekToBeginning(places);
        List<ConsumerRecord<byte[], byte[]>> got = readToEnd(consumer, places);
        for (int p = 0; p < partitions; p++) {
            int partition = p;
            expectSame(got.stream().filter(r -> r.partition() == partition).toList(), inPartition(partition));
        }
    }

    private void seekByOffset(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        for (Lookup seek : byOffset) {
            readFrom(consumer, new TopicPartition(topic, seek.partition), seek.offset);
        }
    }

    private void seekByTime(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        for (Lookup lookup : byTime) {
            TopicPartition place = new TopicPartition(topic, lookup.partition);
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(place, lookup.timestamp), TIMEOUT).get(place);
            expect(found == null ? -1L : found.offset(), lookup.offset, "offset for " + lookup.timestamp);
            if (found != null) {
                Expected record = inPartition(lookup.partition).get((int) lookup.offset);
                expect(found.timestamp(), record.timestamp, "timestamp found for " + lookup.timestamp);
                readFrom(consumer, place, found.offset());
            }
        }
    }

    private void ends(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        for (int partition = 0; partition < partitions; partition++) {
            TopicPartition place = new TopicPartition(topic, partition);
            expect(consumer.beginningOffsets(List.of(place), TIMEOUT).get(place), 0L, "earliest");
            expect(consumer.endOffsets(List.of(place), TIMEOUT).get(place), (long) inPartition(partition).size(), "latest");
        }
    }

    private void maxTimestamp(String topic) throws Exception {
        for (int partition = 0; partition < partitions; partition++) {
            TopicPartition place = new TopicPartition(topic, partition);
            Expected newest = null;
            for (Expected r : inPartition(partition)) {
                newest = newest == null || r.timestamp > newest.timestamp ? r : newest;
            }
            var found = await(admin.listOffsets(Map.of(place, OffsetSpec.maxTimestamp())).all()).get(place);
            expect(found.offset(), newest.offset, "offset of the largest timestamp");
            expect(found.timestamp(), newest.timestamp, "largest timestamp");
        }
    }

    private void readFrom(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, long offset) {
        consumer.assign(List.of(place));
        consumer.seek(place, offset);
        List<Expected> want = inPartition(place.partition());
        expectSame(readToEnd(consumer, List.of(place)), want.subList((int) offset, want.size()));
    }

    private List<ConsumerRecord<byte[], byte[]>> readToEnd(
            KafkaConsumer<byte[], byte[]> consumer, Collection<TopicPartition> places) {
        Map<TopicPartition, Long> ends = consumer.endOffsets(places, TIMEOUT);
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        while (places.stream().anyMatch(place -> consumer.position(place, TIMEOUT) < ends.get(place))) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the end was not reached; " + got.size() + " records were read");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(got::add);
        }
        return got;
    }

    private void tooLarge(String topic) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("max.request.size", 10_000_000))) {
            Future<RecordMetadata> refused = producer.send(new ProducerRecord<>(topic, 0, null, new byte[3_000_000]));
            expectError(RecordTooLargeException.class, refused::get);
            long offset = producer.send(new ProducerRecord<>(topic, 0, null, new byte[100])).get().offset();
            expect(offset, (long) inPartition(0).size(), "offset of the next record");
        }
    }

    private void weakerAcks(String topic) throws Exception {
        for (String acks : List.of("0", "1")) {
            Map<String, Object> settings = Map.of("acks", acks, "enable.idempotence", false);
            try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
                for (int number = 0; number < 50; number++) {
                    producer.send(new ProducerRecord<>(topic, 0, null, (acks + "/" + number).getBytes()));
                }
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seek(place, 0);
            List<String> want = new ArrayList<>();
            List.of("0", "1").forEach(acks -> IntStream.range(0, 50).forEach(number -> want.add(acks + "/" + number)));
            List<String> got = readToEnd(consumer, List.of(place)).stream().map(r -> new String(r.value())).toList();
            expect(got, want, "values");
        }
    }

    private void outOfRange(String topic) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            TopicPartition place = new TopicPartition(topic, 1);
            consumer.assign(List.of(place));
            consumer.seek(place, 1_000_000);
            expectError(OffsetOutOfRangeException.class, () -> {
                for (long deadline = System.nanoTime() + TIMEOUT.toNanos(); System.nanoTime() < deadline; ) {
                    consumer.poll(Duration.ofMillis(200));
                }
            });
        }
    }

    private void describeProducers(String topic) throws Exception {
        TopicPartition place = new TopicPartition(topic, 1);
        List<ProducerState> states =
                await(admin.describeProducers(List.of(place)).partitionResult(place)).activeProducers();
        expect(states.size(), 1, "producers that wrote to the partition");
        expect(states.get(0).lastSequence(), inPartition(1).size() - 1, "last sequence");
    }

    /** A broker that has none says so, in place of leaving the producer to ask for a coordinator until its time is over. */
    private void transactions() {
        Map<String, Object> settings =
                Map.of("transactional.id", topic("tx"), "max.block.ms", (int) TIMEOUT.toMillis());
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            producer.initTransactions();
        } catch (KafkaException error) {
            expect(error.getClass(), TransactionalIdAuthorizationException.class, "error");
        }
    }

    private void deleteRecords(String topic) throws Exception {
        TopicPartition place = new TopicPartition(topic, 0);
        var deleted = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(30)));
        expect(await(deleted.lowWatermarks().get(place)).lowWatermark(), 30L, "low watermark");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            expect(consumer.beginningOffsets(List.of(place), TIMEOUT).get(place), 30L, "earliest");
            readFrom(consumer, place, 30);
        }
    }

    private void deleteTopics() throws Exception {
        Set<String> topics = CODECS.stream().map(this::topic).collect(Collectors.toSet());
        topics.add(topic("acks"));
        await(admin.deleteTopics(topics).all());
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        while (await(admin.listTopics().names()).stream().anyMatch(topics::contains)) {
            expect(System.nanoTime() < deadline, true, "the topics are gone in time");
            Thread.sleep(50);
        }
    }

    private List<Expected> inPartition(int partition) {
        return records.stream().filter(r -> r.partition == partition).toList();
    }

    private static void expectSame(List<ConsumerRecord<byte[], byte[]>> got, List<Expected> want) {
        expect(got.size(), want.size(), "number of records");
        for (int i = 0; i < want.size(); i++) {
            ConsumerRecord<byte[], byte[]> g = got.get(i);
            Expected w = want.get(i);
            String place = " at partition " + w.partition + " offset " + w.offset;
            expect(g.offset(), w.offset, "offset" + place);
            expect(g.timestamp(), w.timestamp, "timestamp" + place);
            expect(Arrays.equals(g.key(), w.key), true, "key is the one sent" + place);
            expect(Arrays.equals(g.value(), w.value), true, "value is the one sent" + place);
            expect(Arrays.asList(g.headers().toArray()), w.headers, "headers" + place);
        }
    }

    private static void expect(Object got, Object want, String what) {
        if (!got.equals(want)) {
            throw new IllegalStateException(what + ": " + got + ", wanted " + want);
        }
    }

    private static void expectError(Class<? extends KafkaException> kind, Body body) throws Exception {
        try {
            body.run();
        } catch (ExecutionException error) {
            expect(error.getCause().getClass(), kind, "error");
            return;
        } catch (KafkaException error) {
            expect(error.getClass(), kind, "error");
            return;
        }
        throw new IllegalStateException("no error, wanted " + kind.getSimpleName());
    }

    private static <T> T await(KafkaFuture<T> future) throws Exception {
        return future.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    }

    private void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Exception error) {
            System.out.println(("not ok " + name + " # " + error).replace('\n', ' '));
        }
    }
}
