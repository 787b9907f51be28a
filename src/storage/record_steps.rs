use crate::io::executor;
use crate::model::limits::INFLATE_STEP_BYTES;
use crate::record::records::{RecordReader, RecordsError};

/// Inflates the next record of a batch, between whose parts others may run. Then the record can be had at once.
pub async fn inflate_next(records: &mut RecordReader<'_>) -> Result<(), RecordsError> {
    loop {
        executor::yield_if_needed().await;
        if records.inflate_ahead(INFLATE_STEP_BYTES)? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
    use crate::record::encode::BatchBuilder;
    use crate::record::{Codec, InflateBounds};

    #[test]
    fn a_large_record_is_inflated_in_steps_and_is_the_same() {
        let value: Vec<u8> = (0..INFLATE_STEP_BYTES as u32)
            .flat_map(|n| n.to_le_bytes())
            .collect();
        for codec in Codec::ALL {
            let mut builder = BatchBuilder::new().codec(codec);
            for value in [&value[..], b"small", &value[..20_000]] {
                builder.push(TimestampMs(1), Some(b"key"), Some(value), &[]);
            }
            let batch = builder.build();
            let mut records = RecordReader::new(&batch, InflateBounds::WIDEST).unwrap();
            let mut step_count = 1;
            while !records.inflate_ahead(INFLATE_STEP_BYTES).unwrap() {
                step_count += 1;
            }
            assert!(
                codec == Codec::None || step_count >= 3,
                "{codec:?}: {step_count}"
            );
            for expected in [&value[..], b"small", &value[..20_000]] {
                executor::block_on(inflate_next(&mut records)).unwrap();
                let record = records.next_record().unwrap().unwrap();
                assert!(record.value == Some(expected), "{codec:?}");
            }
            executor::block_on(inflate_next(&mut records)).unwrap();
            assert_eq!(records.next_record(), Ok(None));
        }
    }
}
