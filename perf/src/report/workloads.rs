//! The list of built-in workloads.

use std::fmt::Write;

use crate::quantity::Rate;
use crate::workload::BUILT_IN;

pub fn workloads_text() -> String {
    let mut out = String::new();
    write_all(&mut out).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "{:<43} {:>7} {:>5} {:>2} {:>4} {:>6} {:>7}",
        "name", "t x p", "bytes", "P", "SxC", "msg/s", "batch"
    )?;
    for built_in in BUILT_IN {
        let load = built_in.workload();
        writeln!(
            out,
            "{:<43} {:>7} {:>5} {:>2} {:>4} {:>6} {:>7}",
            load.name,
            format!("{}x{}", load.topics, load.partitions_per_topic),
            load.message_size,
            load.producers_per_topic,
            format!(
                "{}x{}",
                load.subscriptions_per_topic, load.consumer_per_subscription
            ),
            load.producer_rate
                .map_or_else(|| "search".to_owned(), short_rate),
            load.batch_bytes
                .map_or_else(|| "driver".to_owned(), |bytes| bytes.to_string()),
        )?;
    }
    out.write_str(
        "\nt x p: topics, each of so many partitions. bytes: of a record. P: producers of a\n\
         topic. SxC: subscriptions of a topic, each of so many consumers. msg/s: over all\n\
         topics, k a thousand, max as many as are taken. batch: bytes that the load is\n\
         usually sent in; --batch-bytes or a driver's batch.size says otherwise.\n",
    )
}

fn short_rate(rate: Rate) -> String {
    match rate {
        Rate::Records(count) if count % 1_000 == 0 => format!("{}k", count / 1_000),
        rate => rate.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_a_terminal_of_80_columns() {
        for line in workloads_text().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
