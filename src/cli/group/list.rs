use serde::Serialize;

use crate::client::groups::ListedGroup;

use super::super::exit::{CliError, Outcome};
use super::super::table::{Align, Table};
use super::super::{print, to_json};
use super::ListArguments;

/// A group, as `corelog group list --json` prints it.
#[derive(Debug, Serialize)]
struct Listed {
    group: String,
    /// Empty where the broker is too old to tell.
    state: String,
    /// `classic` or `consumer`; empty where the broker is too old to tell.
    #[serde(rename = "type")]
    group_type: String,
    protocol_type: String,
}

impl From<ListedGroup> for Listed {
    fn from(group: ListedGroup) -> Self {
        Self {
            group: group.group,
            state: group.state,
            group_type: group.group_type,
            protocol_type: group.protocol_type,
        }
    }
}

pub(super) fn run(arguments: &ListArguments) -> Result<Outcome, CliError> {
    let groups = arguments.cluster.connect()?.groups()?;
    let listed: Vec<Listed> = groups.into_iter().map(Listed::from).collect();
    print(&if arguments.json {
        to_json(&listed)
    } else {
        let mut table = Table::new(&[
            ("GROUP", Align::Left),
            ("STATE", Align::Left),
            ("TYPE", Align::Left),
            ("PROTOCOL", Align::Left),
        ]);
        for group in listed {
            table.push([
                group.group,
                group.state,
                group.group_type,
                group.protocol_type,
            ]);
        }
        table.to_string()
    })?;
    Ok(Outcome::Done)
}
