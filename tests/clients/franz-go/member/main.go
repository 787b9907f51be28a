// franz-go as a member of a group: see tests/clients/members/__init__.py for what it is given and what it prints.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type options struct {
	Bootstrap   string
	Group       string
	Topics      []string
	Batch       int
	Assignor    string
	Instance    string
	SessionMs   int `json:"session_ms"`
	RebalanceMs int `json:"rebalance_ms"`
	Ask         bool
	Protocol    string
}

var assignors = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

type member struct {
	options options
	orders  chan string
	// Done once it shall leave.
	leaves context.Context

	mutex sync.Mutex
	owned map[string]bool
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s OPTIONS_JSON\n", os.Args[0])
		os.Exit(2)
	}
	leaves, leave := context.WithCancel(context.Background())
	m := &member{orders: make(chan string, 100), leaves: leaves, owned: make(map[string]bool)}
	if err := json.Unmarshal([]byte(os.Args[1]), &m.options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go m.listen(leave)
	err := m.run()
	switch {
	case errors.Is(err, kerr.FencedInstanceID):
		fmt.Println("fenced")
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (m *member) listen(leave func()) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "leave" {
		m.orders <- lines.Text()
	}
	leave()
}

func (m *member) run() error {
	o := &m.options
	settings := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeTopics(o.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(time.Duration(o.SessionMs) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(o.SessionMs/6) * time.Millisecond),
		kgo.RebalanceTimeout(time.Duration(o.RebalanceMs) * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(200 * time.Millisecond),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, gained map[string][]int32) { m.gains(gained) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { m.gives(given) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { m.gives(lost) }),
	}
	if o.Assignor != "" {
		settings = append(settings, kgo.Balancers(assignors[o.Assignor]))
	}
	if o.Instance != "" {
		settings = append(settings, kgo.InstanceID(o.Instance))
	}
	if o.Protocol == "consumer" {
		settings = append(settings, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		return err
	}
	for m.leaves.Err() == nil {
		if err := m.poll(client); err != nil {
			client.AllowRebalance()
			client.Close()
			return err
		}
		client.AllowRebalance()
	}
	client.AllowRebalance()
	client.Close()
	fmt.Println("left")
	return nil
}

// poll handles what one poll gives. It waits for a second at most, so that it sees when it shall leave.
func (m *member) poll(client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(m.leaves, time.Second)
	defer cancel()
	fetches := client.PollRecords(ctx, m.options.Batch)
	for _, failure := range fetches.Errors() {
		if errors.Is(failure.Err, kerr.FencedInstanceID) {
			return failure.Err
		}
	}
	records := fetches.Records()
	for _, r := range records {
		fmt.Printf("record %s %d %d %s\n", r.Topic, r.Partition, r.Offset, r.Value)
	}
	if len(records) == 0 || !m.mayCommit() {
		return nil
	}
	ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch err := client.CommitRecords(ctx, records...); {
	case errors.Is(err, kerr.FencedInstanceID):
		return err
	case err != nil:
		fmt.Printf("commit failed %v\n", err)
	default:
		fmt.Println("committed")
	}
	return nil
}

func (m *member) mayCommit() bool {
	if !m.options.Ask {
		return true
	}
	fmt.Println("commit?")
	select {
	case order := <-m.orders:
		return order == "commit"
	case <-m.leaves.Done():
		return false
	}
}

func (m *member) gains(places map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, name := range names(places) {
		m.owned[name] = true
	}
	m.sayOwned()
}

func (m *member) gives(places map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	fmt.Println("gave " + strings.Join(names(places), " "))
	for _, name := range names(places) {
		delete(m.owned, name)
	}
	m.sayOwned()
}

func (m *member) sayOwned() {
	var all []string
	for name := range m.owned {
		all = append(all, name)
	}
	sort.Strings(all)
	fmt.Println("owns " + strings.Join(all, " "))
}

func names(places map[string][]int32) []string {
	var all []string
	for topic, partitions := range places {
		for _, partition := range partitions {
			all = append(all, fmt.Sprintf("%s:%d", topic, partition))
		}
	}
	sort.Strings(all)
	return all
}
