package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Corpus is what harness/corpus.py writes: the records to send and the answers to expect.
type Corpus struct {
	Partitions int32
	Records    []Record
	ByTime     []Lookup `json:"by_time"`
	ByOffset   []Lookup `json:"by_offset"`
}

// Record has base64 texts for Key and Value; encoding/json turns them into bytes, and null into nil.
type Record struct {
	Partition int32
	Offset    int64
	Timestamp int64
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is a pair [name, base64 or null].
type Header struct {
	Name  string
	Value []byte
}

func (h *Header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.Name, &h.Value})
}

// Lookup asks for an offset, by time or as a place to seek to.
type Lookup struct {
	Partition int32
	Timestamp int64
	Offset    int64
}

func readCorpus(path string) (*Corpus, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	corpus := new(Corpus)
	return corpus, json.Unmarshal(text, corpus)
}

func (c *Corpus) inPartition(partition int32) []Record {
	var records []Record
	for _, record := range c.Records {
		if record.Partition == partition {
			records = append(records, record)
		}
	}
	return records
}

func (r *Record) toKgo(topic string) *kgo.Record {
	record := &kgo.Record{
		Topic:     topic,
		Partition: r.Partition,
		Timestamp: time.UnixMilli(r.Timestamp),
		Key:       r.Key,
		Value:     r.Value,
	}
	for _, header := range r.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	return record
}

// expectSame compares what was read from one partition with what was sent to it, to the byte.
func expectSame(got []*kgo.Record, want []Record) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d records were read, %d were sent", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		var difference string
		switch {
		case g.Partition != w.Partition || g.Offset != w.Offset:
			difference = fmt.Sprintf("it stands at partition %d offset %d", g.Partition, g.Offset)
		case g.Timestamp.UnixMilli() != w.Timestamp:
			difference = fmt.Sprintf("timestamp %d, sent was %d", g.Timestamp.UnixMilli(), w.Timestamp)
		case !sameBytes(g.Key, w.Key):
			difference = fmt.Sprintf("key %q, sent was %q", g.Key, w.Key)
		case !sameBytes(g.Value, w.Value):
			difference = fmt.Sprintf("value of %d bytes differs from the %d sent", len(g.Value), len(w.Value))
		case len(g.Headers) != len(w.Headers):
			difference = fmt.Sprintf("%d headers, sent were %d", len(g.Headers), len(w.Headers))
		}
		for h := 0; difference == "" && h < len(w.Headers); h++ {
			if g.Headers[h].Key != w.Headers[h].Name || !sameBytes(g.Headers[h].Value, w.Headers[h].Value) {
				difference = fmt.Sprintf("header %d is %v, sent was %v", h, g.Headers[h], w.Headers[h])
			}
		}
		if difference != "" {
			return fmt.Errorf("partition %d offset %d: %s", w.Partition, w.Offset, difference)
		}
	}
	return nil
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}
