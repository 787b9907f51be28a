//! Runs side by side: every metric, its difference, and whether that is more than the runs of one side differ among
//! themselves.
//!
//! Owns: reading reports back, the metrics that compare, the verdict, how it is shown. Must never know: how they were
//! measured. A report that another version wrote, or a run that is not valid, is refused.

mod chart;
mod comparison;
mod metric;
mod page;
mod sample;
mod side;
mod table;

pub use comparison::{Cell, Comparison};
pub use metric::{FailOn, Metric, parse_fail_on};
pub use page::{page, section};
pub use side::Side;
pub use table::text;
