//! Loads other than the text's.

use super::super::constraint::{BrokerCounts, Resource};
use super::super::source::Source;
use super::{estimate, sized};

/// The text's load as flags.
const TEXT: [&str; 8] = [
    "--ingest",
    "1Mmsg/s",
    "--message-size",
    "1KB",
    "--topic-ingest",
    "500MB/s",
    "--disk-space",
    "350TB",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TEXT.iter().chain(more).copied().collect()
}

#[test]
fn the_texts_load_as_flags_gives_the_texts_brokers() {
    let estimate = estimate(&TEXT);
    assert_eq!(estimate.binding, Resource::DiskBandwidth);
    assert_eq!(
        estimate.brokers,
        BrokerCounts {
            at_full: 6,
            one_lost: 7,
            at_headroom: 9,
            at_headroom_one_lost: 10,
        }
    );
    assert_eq!(estimate.chosen_brokers.value, 10);
    assert_eq!(estimate.database_model.servers, 600);
    assert_eq!(estimate.consumer_group.partitions, 10);
    assert_eq!(estimate.consumer_group.segment_seconds, 20.0);
    assert_eq!(estimate.consumer_group.partition_bytes, 30.24e12);
}

#[test]
fn each_constraint_is_its_formula() {
    let estimate = estimate(&with(&["--readers", "2", "--brokers", "16"]));
    let needs = |resource| {
        let mut constraints = estimate.constraints.iter();
        let found = constraints.find(|constraint| constraint.resource == resource);
        let found = found.unwrap();
        (found.cluster_needs, found.brokers_at_full)
    };
    assert_eq!(needs(Resource::DiskBandwidth), (3e9, 6));
    assert_eq!(needs(Resource::DiskSpace), (1_814.4e12, 6));
    assert_eq!(needs(Resource::NetworkIn), (3e9, 3));
    assert_eq!(needs(Resource::NetworkOut), (4e9, 4));
    // 1.2 + 2 * (0.5 + 1.2) + 2 * 0.5 CPU-s/GB, of 16 cores a broker.
    assert_eq!(needs(Resource::Cpu), (5.6, 1));
    assert_eq!(needs(Resource::Partitions), (60.0, 1));
    assert_eq!(needs(Resource::Memory), (60e6 + 30e9, 1));
    let disk = &estimate.constraints[0];
    assert_eq!(disk.utilisation, 0.375);
    assert_eq!(disk.utilisation_one_lost, Some(0.4));
}

#[test]
fn disk_space_binds_when_disks_are_small() {
    let estimate = estimate(&["--ingest", "1GB/s", "--disk-space", "20TB"]);
    assert_eq!(estimate.binding, Resource::DiskSpace);
    assert_eq!(estimate.brokers.at_full, 91);
}

#[test]
fn many_readers_make_the_network_out_bind() {
    let estimate = estimate(&with(&["--readers", "10"]));
    assert_eq!(estimate.binding, Resource::NetworkOut);
    assert_eq!(estimate.brokers.at_full, 12);
}

#[test]
fn few_cores_make_the_cpu_bind() {
    let estimate = estimate(&with(&["--cores", "1", "--c-lead", "10s/GB"]));
    assert_eq!(estimate.binding, Resource::Cpu);
    // 10 + 2 * (0.5 + 1.2) + 0.5 cores.
    assert_eq!(estimate.brokers.at_full, 14);
    assert_eq!(estimate.broker.cost.lead_ns_per_gb.source, Source::Flag);
    assert_eq!(estimate.broker.cost.send_ns_per_gb.source, Source::Default);
}

#[test]
fn many_partitions_bind_and_take_memory() {
    let partitions = estimate(&with(&["--partitions", "100000"]));
    assert_eq!(partitions.binding, Resource::Partitions);
    assert_eq!(partitions.brokers.at_full, 75);
    let memory = estimate(&with(&["--memory", "1GB"]));
    assert_eq!(memory.binding, Resource::Memory);
}

#[test]
fn the_peak_sizes_rates_and_the_average_sizes_space() {
    let estimate = estimate(&with(&["--peak-factor", "2"]));
    assert_eq!(estimate.constraints[0].cluster_needs, 6e9);
    assert_eq!(estimate.constraints[1].cluster_needs, 1_814.4e12);
    assert_eq!(estimate.consumer_group.partitions, 20);
}

#[test]
fn compression_makes_less_to_write_keep_and_send() {
    let estimate = estimate(&with(&["--compression-ratio", "4"]));
    assert_eq!(estimate.constraints[0].cluster_needs, 750e6);
    assert_eq!(estimate.constraints[1].cluster_needs, 453.6e12);
    assert_eq!(estimate.consumer_group.partitions, 10);
    assert_eq!(estimate.consumer_group.segment_seconds, 80.0);
}

#[test]
fn there_are_never_fewer_brokers_than_copies() {
    let estimate = estimate(&["--ingest", "1MB/s", "--disk-space", "20TB"]);
    assert_eq!(estimate.binding, Resource::Copies);
    assert_eq!(
        estimate.brokers,
        BrokerCounts {
            at_full: 3,
            one_lost: 3,
            at_headroom: 3,
            at_headroom_one_lost: 3,
        }
    );
}

#[test]
fn too_few_brokers_are_named_so() {
    let too_few = estimate(&with(&["--brokers", "5"]));
    assert!(too_few.constraints[0].utilisation > 1.0);
    assert!(
        too_few
            .remarks
            .iter()
            .any(|remark| remark.contains("5 brokers are too few"))
    );
    let just_enough = estimate(&with(&["--brokers", "6"]));
    assert!(
        just_enough
            .remarks
            .iter()
            .any(|remark| remark.contains("when one is lost"))
    );
}

#[test]
fn a_broker_whose_disk_is_full_with_new_writes_is_never_refilled() {
    let refill = estimate(&with(&["--brokers", "6"])).refill;
    assert_eq!((refill.broker_bytes, refill.seconds), (302.4e12, 604_800.0));
    assert_eq!(refill.seconds_beside_new_writes, None);
    assert!(!refill.longer_than_retention);
    let slow = estimate(&with(&["--nic", "400MB/s", "--brokers", "8"])).refill;
    assert_eq!((slow.bytes_per_s, slow.seconds), (400_000_000, 567_000.0));
    assert_eq!(slow.seconds_beside_new_writes, Some(9_072_000.0));
}

#[test]
fn few_partitions_on_many_brokers_are_remarked_as_uneven() {
    let remarks = estimate(&["--ingest", "1GB/s", "--disk-space", "100TB"]).remarks;
    assert!(
        remarks
            .iter()
            .any(|remark| remark.contains("do not spread evenly"))
    );
    let many = [
        "--ingest",
        "1GB/s",
        "--disk-space",
        "100TB",
        "--partitions",
        "900",
    ];
    assert!(estimate(&many).remarks.is_empty());
}

#[test]
fn the_text_prints_each_constraint_and_what_binds() {
    let text = sized(&TEXT).unwrap().text(crate::columns::Columns::WIDE);
    for part in [
        "disk bandwidth",
        "disk space",
        "network in",
        "network out",
        "CPU",
        "partitions",
        "memory",
        "disk bandwidth binds.",
        "at 70 % with one broker lost",
    ] {
        assert!(text.contains(part), "'{part}' is not in the text");
    }
}

#[test]
fn the_text_is_no_wider_than_the_terminal() {
    for flags in [&TEXT[..], &["--walkthrough"]] {
        let text = sized(flags)
            .unwrap()
            .text(crate::columns::Columns::OF_A_FILE);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
