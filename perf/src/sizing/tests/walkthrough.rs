//! Every number of the text, and every number that follows from it.

use super::super::constraint::BrokerCounts;
use super::super::walkthrough::Line;
use super::{sized, walkthrough};

fn line(what: &str) -> Line {
    let text = walkthrough(&[]).text;
    let mut lines = text.in_the_text.into_iter().chain(text.left_out);
    lines
        .find(|line| line.what == what)
        .unwrap_or_else(|| panic!("no line '{what}'"))
}

fn shown(what: &str) -> String {
    line(what).shown
}

fn remark(what: &str) -> String {
    line(what).remark.expect("a remark")
}

#[test]
fn one_gigabyte_a_second_comes_in() {
    assert_eq!(shown("in"), "1 GB/s");
    assert_eq!(line("in").value, 1e9);
    assert_eq!(line("in").formula, "1,000,000 msg/s x 1 KB");
    assert_eq!(line("messages in a segment").value, 1e6);
}

#[test]
fn a_day_stores_100_tb_and_86_4_exactly() {
    assert_eq!(shown("storage a day"), "100 TB");
    assert_eq!(line("storage a day").exact, Some(86.4e12));
    assert_eq!(remark("storage a day"), "86.4 TB exactly, with 86,400 s");
}

#[test]
fn seven_days_in_three_copies_are_2100_tb_and_1_8_pb_exactly() {
    assert_eq!(shown("kept, one copy"), "700 TB");
    assert_eq!(shown("kept, all copies"), "2,100 TB");
    assert_eq!(line("kept, all copies").exact, Some(1_814.4e12));
    assert!(remark("kept, all copies").starts_with("1.8 PB exactly"));
}

#[test]
fn forgetting_the_copies_gives_700_tb_and_keeping_one_day_300_tb() {
    assert_eq!(shown("without the copies"), "700 TB");
    assert_eq!(shown("for one day only"), "300 TB");
}

#[test]
fn six_brokers_at_full_disk_for_the_walkthrough() {
    assert_eq!(shown("disk writes"), "3 GB/s");
    assert_eq!(shown("brokers"), "6 brokers");
    assert_eq!(line("brokers").formula, "3 GB/s / 500 MB/s, rounded up");
    assert_eq!(walkthrough(&[]).text.brokers.at_full, 6);
}

#[test]
fn the_database_model_says_600_and_is_named_wrong() {
    assert_eq!(shown("counted as a database"), "600 servers");
    assert!(remark("counted as a database").starts_with("wrong: "));
}

#[test]
fn each_of_six_brokers_takes_in_half_its_network_and_keeps_350_tb() {
    assert_eq!(shown("network in, each broker"), "500 MB/s");
    assert_eq!(remark("network in, each broker"), "50 % of 1 GB/s");
    assert_eq!(shown("disk space, each broker"), "350 TB");
    assert_eq!(shown("messages written, each broker"), "500,000 messages/s");
}

#[test]
fn ten_partitions_of_20_s_segments_and_35_tb() {
    let partitions = "partitions of the busiest topic";
    assert_eq!(shown(partitions), "10 partitions");
    assert_eq!(remark(partitions), "each of 6 brokers leads 1 or 2");
    assert_eq!(shown("into each partition"), "50 MB/s");
    assert_eq!(shown("a segment fills in"), "20 s");
    assert_eq!(shown("kept in each partition"), "35 TB");
}

#[test]
fn seven_brokers_survive_the_loss_of_one_that_six_do_not() {
    assert_eq!(shown("with one broker lost"), "600 MB/s");
    assert_eq!(
        remark("with one broker lost"),
        "each, more than the 500 MB/s that a broker takes"
    );
    assert_eq!(shown("brokers to survive that"), "7 brokers");
}

#[test]
fn nine_brokers_at_70_percent_and_ten_for_both() {
    assert_eq!(shown("brokers at the headroom"), "9 brokers");
    assert_eq!(shown("brokers for both"), "10 brokers");
    assert_eq!(
        walkthrough(&[]).text.brokers,
        BrokerCounts {
            at_full: 6,
            one_lost: 7,
            at_headroom: 9,
            at_headroom_one_lost: 10,
        }
    );
}

#[test]
fn another_headroom_gives_another_number_of_brokers() {
    let brokers = walkthrough(&["--headroom", "50%"]).text.brokers;
    assert_eq!(
        (
            brokers.at_full,
            brokers.at_headroom,
            brokers.at_headroom_one_lost
        ),
        (6, 12, 13)
    );
}

#[test]
fn refilling_350_tb_takes_8_1_days_which_is_longer_than_the_7_kept() {
    let refill = line("refilling a lost broker");
    assert_eq!(refill.shown, "8.1 days");
    assert_eq!((refill.value, refill.exact), (700_000.0, Some(604_800.0)));
    assert_eq!(refill.formula, "350 TB / 500 MB/s");
    assert!(
        refill
            .remark
            .unwrap()
            .starts_with("longer than the 7 days kept")
    );
}

#[test]
fn followers_and_readers_take_as_much_out_as_comes_in() {
    assert_eq!(shown("network out, each broker"), "500 MB/s");
}

#[test]
fn the_text_and_the_json_say_the_same() {
    let sizing = sized(&["--walkthrough"]).unwrap();
    let text = sizing.text(crate::columns::Columns::WIDE);
    let json = serde_json::to_value(&sizing).unwrap();
    for part in ["in_the_text", "left_out"] {
        for line in json["text"][part].as_array().unwrap() {
            for field in ["what", "shown", "formula", "remark"] {
                let said = line[field].as_str().unwrap_or_default();
                assert!(text.contains(said), "{field} '{said}' is not in the text");
            }
        }
    }
    assert_eq!(json["schema"], "corelog-perf-walkthrough");
}
