//! The values of one metric over the runs of one side.

/// Two runs that happen to be alike say little about how far runs lie apart.
const SPREAD_RUNS_MIN: usize = 3;

/// One value for each run.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn values(&self) -> &[f64] {
        &self.0
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        }
    }

    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::MAX, f64::min)
    }

    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::MIN, f64::max)
    }

    /// How far the runs lie apart, as a share of the median; None of fewer than three, which do not tell.
    pub fn spread(&self) -> Option<f64> {
        (self.0.len() >= SPREAD_RUNS_MIN).then(|| (self.max() - self.min()) / self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_from_the_least_to_the_most_as_a_share_of_the_median() {
        let mut sample = Sample::default();
        sample.push(10.0);
        assert_eq!(sample.spread(), None);
        sample.push(8.0);
        assert_eq!(sample.spread(), None);
        sample.push(12.0);
        assert_eq!(
            (sample.median(), sample.min(), sample.max(), sample.spread()),
            (10.0, 8.0, 12.0, Some(0.4))
        );
        sample.push(11.0);
        assert_eq!(sample.median(), 10.5);
    }
}
