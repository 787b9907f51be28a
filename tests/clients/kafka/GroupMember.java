import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own consumer as a member of a group. See tests/clients/members/__init__.py for what it is given and prints. */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS =
            Map.of(
                    "range", "RangeAssignor",
                    "roundrobin", "RoundRobinAssignor",
                    "sticky", "StickyAssignor",
                    "cooperative-sticky", "CooperativeStickyAssignor");

    private final JsonNode options;
    private final TreeSet<String> owned = new TreeSet<>();
    private final BlockingQueue<String> orders = new LinkedBlockingQueue<>();
    private volatile boolean leaves;

    public static void main(String[] arguments) throws Exception {
        GroupMember member = new GroupMember(new ObjectMapper().readTree(arguments[0]));
        try {
            member.run();
        } catch (FencedInstanceIdException fenced) {
            say("fenced");
        }
        System.exit(0); // the thread that reads stdin would hold the program
    }

    private GroupMember(JsonNode options) {
        this.options = options;
        Thread listener = new Thread(this::listen);
        listener.setDaemon(true);
        listener.start();
    }

    private void listen() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null && !line.equals("leave"); line = lines.readLine()) {
                orders.add(line);
            }
        } catch (java.io.IOException closed) {
            // As at its end: nobody gives orders any more.
        }
        leaves = true;
        orders.add("leave");
    }

    private void run() throws Exception {
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings(), new StringDeserializer(), new StringDeserializer())) {
            List<String> topics = new ArrayList<>();
            options.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
            while (!leaves) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> r : records) {
                    say("record " + r.topic() + " " + r.partition() + " " + r.offset() + " " + r.value());
                }
                if (!records.isEmpty() && mayCommit()) {
                    commit(consumer);
                }
            }
        }
        say("left");
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", options.get("bootstrap").asText());
        settings.put("group.id", options.get("group").asText());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("allow.auto.create.topics", "false");
        settings.put("max.poll.records", options.get("batch").asText());
        settings.put("max.poll.interval.ms", options.get("rebalance_ms").asText());
        settings.put("metadata.max.age.ms", "500");
        settings.put("fetch.max.wait.ms", "100");
        settings.put("reconnect.backoff.max.ms", "500");
        if (options.get("protocol").asText().equals("consumer")) {
            settings.put("group.protocol", "consumer");
            if (!options.get("assignor").isNull()) {
                settings.put("group.remote.assignor", options.get("assignor").asText());
            }
        } else {
            int sessionMs = options.get("session_ms").asInt();
            settings.put("session.timeout.ms", Integer.toString(sessionMs));
            settings.put("heartbeat.interval.ms", Integer.toString(sessionMs / 6));
            if (!options.get("assignor").isNull()) {
                String name = ASSIGNORS.get(options.get("assignor").asText());
                settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + name);
            }
        }
        if (!options.get("instance").isNull()) {
            settings.put("group.instance.id", options.get("instance").asText());
        }
        return settings;
    }

    private boolean mayCommit() throws InterruptedException {
        if (!options.get("ask").asBoolean()) {
            return true;
        }
        say("commit?");
        return orders.take().equals("commit");
    }

    private void commit(KafkaConsumer<String, String> consumer) {
        try {
            consumer.commitSync();
            say("committed");
        } catch (FencedInstanceIdException fenced) {
            throw fenced;
        } catch (KafkaException failure) {
            say("commit failed " + failure.getClass().getSimpleName());
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> gained) {
        owned.addAll(names(gained));
        say("owns " + String.join(" ", owned));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> given) {
        say("gave " + String.join(" ", names(given)));
        owned.removeAll(names(given));
        say("owns " + String.join(" ", owned));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> lost) {
        onPartitionsRevoked(lost);
    }

    private static List<String> names(Collection<TopicPartition> places) {
        return places.stream().map(p -> p.topic() + ":" + p.partition()).sorted().collect(Collectors.toList());
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
