//! What the two ways of altering settings share: naming the resources, asking the controller, one result for each.

use kafka_protocol::ResponseError;

use crate::api::config_resource::config_resource;
use crate::api::controller_client::ControllerClient;
use crate::api::error_code;
use crate::controller::{ConfigChange, ControllerCommand, SettingsChange};

/// Why a resource's settings stay as they are.
#[derive(Clone, Debug)]
pub struct ChangeRefusal {
    pub error: ResponseError,
    pub reason: String,
}

/// The change that a request asks for, if it makes sense at all.
pub fn change(
    resource_type: i8,
    name: &str,
    settings: Result<SettingsChange, String>,
) -> Result<ConfigChange, ChangeRefusal> {
    let invalid = |reason| ChangeRefusal {
        error: ResponseError::InvalidRequest,
        reason,
    };
    let resource =
        config_resource(resource_type, name).map_err(|error| invalid(error.to_string()))?;
    Ok(ConfigChange {
        resource,
        settings: settings.map_err(invalid)?,
    })
}

/// One result for each change, in their order. Those that were refused already are not asked about.
pub async fn ask(
    controller: &ControllerClient,
    changes: Vec<Result<ConfigChange, ChangeRefusal>>,
    validate_only: bool,
) -> Vec<Result<(), ChangeRefusal>> {
    let asked = changes.iter().flatten().cloned().collect();
    let command = |reply| ControllerCommand::AlterConfigs {
        changes: asked,
        validate_only,
        reply,
    };
    let answers = controller.ask(command).await;
    let mut answers = answers.map(Vec::into_iter);
    let result = |change: Result<ConfigChange, ChangeRefusal>| {
        change?;
        match &mut answers {
            Ok(answers) => answers
                .next()
                .expect("the controller answers each change")
                .map_err(|error| ChangeRefusal {
                    error: error_code::of_alter_config(&error),
                    reason: error.to_string(),
                }),
            Err(gone) => Err(ChangeRefusal {
                error: error_code::CONTROLLER_GONE,
                reason: gone.to_string(),
            }),
        }
    };
    changes.into_iter().map(result).collect()
}
