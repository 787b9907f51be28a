//! Two or more runs side by side: every metric, its difference, and whether that is more than the runs of one side differ among
//! themselves.
//!
//! Owns: reading reports back, the metrics that compare, the verdict. Must never know: how they were measured. A report that another
//! version wrote, or a run that is not valid, is refused.

mod comparison;
mod metric;
mod side;
mod table;

pub use comparison::Comparison;
pub use metric::{FailOn, parse_fail_on};
pub use table::text;
