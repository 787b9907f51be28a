//! The coordinator driven from outside, by requests and time: rule by rule, and by random schedules.

mod committing;
mod joining;
mod limits;
mod restarting;
mod schedule;
mod stage;
mod static_members;
