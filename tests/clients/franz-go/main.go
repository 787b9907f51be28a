// The franz-go suite: see tests/clients/suites/__init__.py for what a suite is given and what it prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const timeout = 60 * time.Second

var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()},
	{"gzip", kgo.GzipCompression()},
	{"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()},
	{"zstd", kgo.ZstdCompression()},
}

type suite struct {
	bootstrap string
	prefix    string
	corpus    *Corpus
	client    *kgo.Client
	admin     *kadm.Client
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: %s BOOTSTRAP CORPUS_JSON TOPIC_PREFIX\n", os.Args[0])
		os.Exit(2)
	}
	corpus, err := readCorpus(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	s := &suite{bootstrap: os.Args[1], prefix: os.Args[3], corpus: corpus, client: client, admin: kadm.NewClient(client)}
	s.run()
	fmt.Println("done")
}

func (s *suite) topic(name string) string { return s.prefix + "-" + name }

func check(name string, body func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := body(ctx); err != nil {
		fmt.Printf("not ok %s # %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Printf("ok %s\n", name)
}

func (s *suite) run() {
	check("cluster is described", s.describeCluster)
	for _, c := range codecs {
		topic := s.topic(c.name)
		check(c.name+": create topic", func(ctx context.Context) error { return s.createTopic(ctx, topic) })
		check(c.name+": produce with the idempotent producer", func(ctx context.Context) error {
			return s.produce(ctx, topic, c.codec)
		})
		check(c.name+": read back every byte", func(ctx context.Context) error { return s.readAll(ctx, topic) })
		check(c.name+": seek by offset", func(ctx context.Context) error {
			for _, seek := range s.corpus.ByOffset {
				if err := s.readFrom(ctx, topic, seek.Partition, seek.Offset); err != nil {
					return err
				}
			}
			return nil
		})
		check(c.name+": seek by time", func(ctx context.Context) error { return s.seekByTime(ctx, topic) })
		check(c.name+": earliest and latest", func(ctx context.Context) error { return s.listOffsets(ctx, topic) })
	}
	check("a topic that exists is refused", func(ctx context.Context) error {
		_, err := s.admin.CreateTopic(ctx, 1, 1, nil, s.topic("none"))
		return expectError(err, kerr.TopicAlreadyExists)
	})
	check("a bad topic name is refused", func(ctx context.Context) error {
		_, err := s.admin.CreateTopic(ctx, 1, 1, nil, "no/slash in names")
		return expectError(err, kerr.InvalidTopicException)
	})
	check("an unknown setting is refused at creation", func(ctx context.Context) error {
		value := "1"
		_, err := s.admin.CreateTopic(ctx, 1, 1, map[string]*string{"no.such.setting": &value}, s.topic("bad"))
		return expectError(err, kerr.InvalidConfig)
	})
	check("topic settings are altered", s.alterTopic)
	check("records are deleted up to an offset", s.deleteRecords)
	check("log directories are described", s.logDirs)
	check("transactions work or are refused for good", s.transactions)
	check("topics are deleted", s.deleteTopics)
}

func (s *suite) describeCluster(ctx context.Context) error {
	metadata, err := s.admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if len(metadata.Brokers) != 1 || metadata.Brokers[0].NodeID != metadata.Controller || metadata.Cluster == "" {
		return fmt.Errorf("one broker, itself the controller, of a named cluster: %+v", metadata)
	}
	return nil
}

func (s *suite) createTopic(ctx context.Context, topic string) error {
	if _, err := s.admin.CreateTopic(ctx, s.corpus.Partitions, 1, nil, topic); err != nil {
		return err
	}
	// A broker may answer before its metadata shows the topic, as Kafka under load does.
	return eventually(ctx, func() (bool, error) {
		details, err := s.admin.ListTopics(ctx, topic)
		if err != nil {
			return false, err
		}
		created := details[topic]
		return len(created.Partitions) == int(s.corpus.Partitions) && created.ID != kadm.TopicID{}, nil
	})
}

func (s *suite) produce(ctx context.Context, topic string, codec kgo.CompressionCodec) error {
	// Idempotence and acks=all are franz-go's defaults.
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, record := range s.corpus.Records {
		records = append(records, record.toKgo(topic))
	}
	// The results come in the order of their acknowledgement; the records that were given carry their offsets.
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	for i, got := range records {
		if want := s.corpus.Records[i]; got.Partition != want.Partition || got.Offset != want.Offset {
			return fmt.Errorf("acknowledged at %d/%d, wanted %d/%d", got.Partition, got.Offset, want.Partition, want.Offset)
		}
	}
	return nil
}

// read consumes from the given places to the ends of their partitions.
func (s *suite) read(ctx context.Context, topic string, from map[int32]int64) (map[int32][]*kgo.Record, error) {
	ends, err := s.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	places := make(map[int32]kgo.Offset)
	for partition, offset := range from {
		places[partition] = kgo.NewOffset().At(offset)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: places}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(20*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	got := make(map[int32][]*kgo.Record)
	for {
		done := true
		for partition, offset := range from {
			end, _ := ends.Lookup(topic, partition)
			done = done && offset+int64(len(got[partition])) >= end.Offset
		}
		if done {
			return got, nil
		}
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) { got[r.Partition] = append(got[r.Partition], r) })
	}
}

func (s *suite) readAll(ctx context.Context, topic string) error {
	from := make(map[int32]int64)
	for partition := range s.corpus.Partitions {
		from[partition] = 0
	}
	got, err := s.read(ctx, topic, from)
	if err != nil {
		return err
	}
	for partition := range s.corpus.Partitions {
		if err := expectSame(got[partition], s.corpus.inPartition(partition)); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) readFrom(ctx context.Context, topic string, partition int32, offset int64) error {
	got, err := s.read(ctx, topic, map[int32]int64{partition: offset})
	if err != nil {
		return err
	}
	return expectSame(got[partition], s.corpus.inPartition(partition)[offset:])
}

func (s *suite) seekByTime(ctx context.Context, topic string) error {
	for _, lookup := range s.corpus.ByTime {
		found, err := s.admin.ListOffsetsAfterMilli(ctx, lookup.Timestamp, topic)
		if err != nil {
			return err
		}
		got, _ := found.Lookup(topic, lookup.Partition)
		// kadm gives the end of the partition where no record is late enough.
		want := lookup.Offset
		if want == -1 {
			want = int64(len(s.corpus.inPartition(lookup.Partition)))
		}
		if got.Err != nil || got.Offset != want {
			return fmt.Errorf("partition %d, %d: offset %d (%v), wanted %d", lookup.Partition, lookup.Timestamp, got.Offset, got.Err, want)
		}
	}
	return nil
}

func (s *suite) listOffsets(ctx context.Context, topic string) error {
	starts, err := s.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := s.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	for partition := range s.corpus.Partitions {
		start, _ := starts.Lookup(topic, partition)
		end, _ := ends.Lookup(topic, partition)
		if want := int64(len(s.corpus.inPartition(partition))); start.Offset != 0 || end.Offset != want {
			return fmt.Errorf("partition %d: %d to %d, wanted 0 to %d", partition, start.Offset, end.Offset, want)
		}
	}
	return nil
}

func (s *suite) alterTopic(ctx context.Context) error {
	topic, value := s.topic("none"), "123456"
	answers, err := s.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: &value}}, topic)
	if err != nil {
		return err
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	return eventually(ctx, func() (bool, error) {
		described, err := s.admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return false, err
		}
		for _, config := range described[0].Configs {
			if config.Key == "max.message.bytes" {
				return config.MaybeValue() == value, nil
			}
		}
		return false, fmt.Errorf("max.message.bytes is not among %d settings", len(described[0].Configs))
	})
}

// A broker that has none says so, in place of leaving the producer to ask for a coordinator until its time is over.
func (s *suite) transactions(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.bootstrap), kgo.TransactionalID(s.topic("tx")))
	if err != nil {
		return err
	}
	defer client.Close()
	if _, _, err = client.ProducerID(ctx); err == nil {
		return nil
	}
	return expectError(err, kerr.TransactionalIDAuthorizationFailed)
}

func (s *suite) deleteRecords(ctx context.Context) error {
	topic := s.topic("lz4")
	to := kadm.Offsets{}
	to.Add(kadm.Offset{Topic: topic, Partition: 2, At: 41, LeaderEpoch: -1})
	answers, err := s.admin.DeleteRecords(ctx, to)
	if err != nil {
		return err
	}
	if answer, _ := answers.Lookup(topic, 2); answer.Err != nil || answer.LowWatermark != 41 {
		return fmt.Errorf("low watermark %d (%v), wanted 41", answer.LowWatermark, answer.Err)
	}
	_, err = s.read(ctx, topic, map[int32]int64{2: 40})
	if !errors.Is(err, kerr.OffsetOutOfRange) {
		return fmt.Errorf("reading a deleted offset gave %v, wanted OFFSET_OUT_OF_RANGE", err)
	}
	return s.readFrom(ctx, topic, 2, 41)
}

func (s *suite) logDirs(ctx context.Context) error {
	all, err := s.admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return err
	}
	var found int
	all.Each(func(dir kadm.DescribedLogDir) {
		dir.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == s.topic("none") && p.Size > 0 {
				found++
			}
		})
	})
	if found != int(s.corpus.Partitions) {
		return fmt.Errorf("%d partitions with bytes, wanted %d", found, s.corpus.Partitions)
	}
	return nil
}

func (s *suite) deleteTopics(ctx context.Context) error {
	var topics []string
	for _, c := range codecs {
		topics = append(topics, s.topic(c.name))
	}
	answers, err := s.admin.DeleteTopics(ctx, topics...)
	if err != nil {
		return err
	}
	if err := answers.Error(); err != nil {
		return err
	}
	return eventually(ctx, func() (bool, error) {
		listed, err := s.admin.ListTopics(ctx)
		if err != nil {
			return false, err
		}
		for _, topic := range topics {
			if listed.Has(topic) {
				return false, nil
			}
		}
		return true, nil
	})
}

// eventually waits for what a broker may do a moment after its answer, as Kafka does.
func eventually(ctx context.Context, condition func() (bool, error)) error {
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("it did not come about in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func expectError(got error, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("the error is %v, wanted %v", got, want)
	}
	return nil
}
