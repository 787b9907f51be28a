//! The list of built-in workloads.

use std::fmt::Write;

use crate::workload::BUILT_IN;

pub fn workloads_text() -> String {
    let mut out = String::new();
    write_all(&mut out).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "{:<44} {:>6} {:>10} {:>8} {:>9} {:>13} {:>9} {:>14} {:>9}",
        "name",
        "topics",
        "partitions",
        "message",
        "producers",
        "subscriptions",
        "consumers",
        "rate",
        "batch"
    )?;
    for built_in in BUILT_IN {
        let load = built_in.workload();
        writeln!(
            out,
            "{:<44} {:>6} {:>10} {:>6} B {:>9} {:>13} {:>9} {:>14} {:>9}",
            load.name,
            load.topics,
            load.partitions_per_topic,
            load.message_size,
            load.producers_per_topic,
            load.subscriptions_per_topic,
            load.consumer_per_subscription,
            load.producer_rate
                .map_or_else(|| "search".to_owned(), |rate| rate.to_string()),
            load.batch_bytes
                .map_or_else(|| "driver's".to_owned(), |bytes| bytes.to_string()),
        )?;
    }
    writeln!(
        out,
        "\nPartitions, producers and subscriptions are each topic's, consumers each subscription's; the rate is that of all topics. A batch is what the load is\n\
         usually sent in: --batch-bytes or a driver's batch.size says otherwise."
    )
}
