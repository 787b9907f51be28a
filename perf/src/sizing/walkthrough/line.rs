//! One line of the estimate.

use serde::Serialize;

use super::super::notation::{bytes, bytes_per_s, number, seconds};

/// One number, how it comes about, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub what: &'static str,
    pub formula: String,
    pub value: f64,
    pub unit: &'static str,
    /// The value as people write it.
    pub shown: String,
    /// With days of 86,400 s, where the text rounds them.
    pub exact: Option<f64>,
    pub remark: Option<String>,
}

impl Line {
    pub fn new(what: &'static str, formula: String, value: f64, unit: &'static str) -> Self {
        let shown = match unit {
            "bytes" => bytes(value),
            "bytes_per_s" => bytes_per_s(value),
            "s" => seconds(value),
            _ => format!("{} {unit}", number(value)),
        };
        Self {
            what,
            formula,
            value,
            unit,
            shown,
            exact: None,
            remark: None,
        }
    }

    pub fn exactly(mut self, value: f64) -> Self {
        self.exact = Some(value);
        self
    }

    pub fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }
}
