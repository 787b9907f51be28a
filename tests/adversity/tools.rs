//! The commands that read and write records, while what they talk to goes away or turns against them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{DescribeGroupsRequest, GroupId, LeaveGroupRequest};
use kafka_protocol::protocol::StrBytes;

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::groups::{commit, committed};
use crate::produce::{batch_of, create_topic, log_end, produce};
use crate::wire::Client;

/// A running command, which is killed if the test ends before it does.
struct Tool {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Tool {
    fn start(broker: &Broker, arguments: &[&str]) -> Self {
        let address = broker.address().to_string();
        let mut process = Command::new(env!("CARGO_BIN_EXE_corelog"))
            .args(arguments)
            .args(["--bootstrap", &address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (printed, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _nobody_reads_any_more = printed.send(line);
            }
        });
        let stdin = process.stdin.take();
        Self {
            process,
            stdin,
            lines,
        }
    }

    fn write_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn next_line(&mut self) -> String {
        match self.lines.recv_timeout(WAIT_MAX) {
            Ok(line) => line,
            Err(_) => panic!("it prints nothing more; {}", self.end().1),
        }
    }

    /// Its exit code and what it said on stderr, once it has ended; killed where it does not.
    fn end(&mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let deadline = Instant::now() + WAIT_MAX;
        while self.process.try_wait().unwrap().is_none() && Instant::now() < deadline {
            thread::yield_now();
        }
        let _it_may_have_ended = self.process.kill();
        let status = self.process.wait().unwrap();
        let mut said = String::new();
        let mut stderr = self.process.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _it_may_have_ended = self.process.kill();
        let _it_may_have_ended = self.process.wait();
    }
}

fn await_log_end(client: &mut Client, topic: &str, end: i64) {
    let deadline = Instant::now() + WAIT_MAX;
    while log_end(client, topic) != end {
        assert!(Instant::now() < deadline, "{topic} never ends at {end}");
        thread::yield_now();
    }
}

fn string(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// The ids of the members of a group that shares its partitions.
fn members_of(client: &mut Client, group: &str) -> Vec<String> {
    let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(string(group))]);
    let described = client.ask(4, &request).groups.remove(0);
    match described.group_state.as_str() {
        "Stable" => {
            let members = described.members.iter();
            members.map(|member| member.member_id.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn produce_and_consume_live_through_a_kill_of_the_broker_and_nothing_is_doubled() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let mut producer = Tool::start(&broker, &["produce", "t"]);
    let mut member = Tool::start(&broker, &["consume", "t", "--group", "g", "-n", "3"]);
    let mut reader = Tool::start(&broker, &["consume", "t", "-n", "3"]);
    producer.write_line("before");
    await_log_end(&mut client, "t", 1);
    for consumer in [&mut member, &mut reader] {
        assert_eq!(consumer.next_line(), "before");
    }
    let broker = broker.kill_and_start_again(data.path(), || producer.write_line("meanwhile"));
    producer.write_line("after");
    let mut client = broker.client();
    await_log_end(&mut client, "t", 3);
    let (code, said) = producer.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("trying again") && said.contains("answers again"),
        "{said}"
    );
    assert_eq!(producer.next_line(), "t: 3 records confirmed");
    for consumer in [&mut member, &mut reader] {
        assert_eq!(consumer.next_line(), "meanwhile");
        assert_eq!(consumer.next_line(), "after");
        let (code, said) = consumer.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("trying again") && said.contains("answers again"),
            "{said}"
        );
    }
    assert_eq!(log_end(&mut client, "t"), 3);
    assert_eq!(committed(&mut client, "g", "t"), 3);
    broker.stop();
}

#[test]
fn consume_takes_no_outage_for_the_end_of_what_comes() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    produce(&mut client, "t", batch_of(&[b"before"])).unwrap();
    let mut reader = Tool::start(&broker, &["consume", "t", "--idle-timeout", "3s"]);
    assert_eq!(reader.next_line(), "before");
    // Longer than it waits for records.
    let outage = || thread::sleep(Duration::from_secs(4));
    let broker = broker.kill_and_start_again(data.path(), outage);
    produce(&mut broker.client(), "t", batch_of(&[b"after"])).unwrap();
    assert_eq!(reader.next_line(), "after");
    let (code, said) = reader.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("answers again"), "{said}");
    broker.stop();
}

#[test]
fn a_member_that_was_thrown_out_commits_nothing_as_a_stranger() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    produce(&mut client, "t", batch_of(&[b"first"])).unwrap();
    let mut member = Tool::start(&broker, &["consume", "t", "--group", "g"]);
    assert_eq!(member.next_line(), "first");
    let members = loop {
        match members_of(&mut client, "g") {
            none if none.is_empty() => thread::yield_now(),
            members => break members,
        }
    };
    // An operator removes it and sets the group back, which is empty then.
    let members = members
        .iter()
        .map(|id| MemberIdentity::default().with_member_id(string(id)));
    let request = LeaveGroupRequest::default()
        .with_group_id(GroupId(string("g")))
        .with_members(members.collect());
    assert_eq!(client.ask(3, &request).error_code, 0);
    assert_eq!(commit(&mut client, "g", "t", 0, 0), 0);
    // It comes back as a new member and reads from there, in place of committing what it had read before.
    assert_eq!(member.next_line(), "first");
}

#[test]
fn no_partition_starves_while_others_are_behind() {
    const PARTITIONS: usize = 24;
    const RECORDS: usize = 3;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    // A fetch takes 1 MiB of a partition and 8 MiB in all, so that three rounds come to each of them once.
    let value = vec![b'v'; 700_000];
    let topic_of = |number: usize| format!("t{number:02}");
    for partition in 0..PARTITIONS {
        let topic = topic_of(partition);
        create_topic(&mut client, &topic, 1, &[]);
        for _ in 0..RECORDS {
            produce(&mut client, &topic, batch_of(&[&value])).unwrap();
        }
    }
    let topics: Vec<String> = (0..PARTITIONS).map(topic_of).collect();
    let mut arguments = vec!["consume", "--until-end", "--format", "%t"];
    arguments.extend(topics.iter().map(String::as_str));
    let mut reader = Tool::start(&broker, &arguments);
    let printed: Vec<String> = (0..PARTITIONS * RECORDS)
        .map(|_| reader.next_line())
        .collect();
    let seen_at = |topic: &String| printed.iter().position(|it| it == topic).unwrap();
    let last_first = topics.iter().map(seen_at).max().unwrap();
    assert!(
        last_first < 2 * PARTITIONS,
        "a partition had to wait for {last_first} records of others: {printed:?}"
    );
    assert_eq!(reader.end().0, Some(0));
}
