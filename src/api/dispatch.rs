//! The table of handlers.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};

use crate::api::context::ApiContext;
use crate::api::reply::{PendingReply, Reply, RequestId};
use crate::api::reply_budget::{ReplyBudget, ReplySize};
use crate::api::{
    alter_configs, api_versions, create_partitions, create_topics, delete_groups, delete_records,
    delete_topics, describe_cluster, describe_configs, describe_groups, describe_log_dirs,
    describe_producers, describe_topic_partitions, fetch, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_config_resources,
    list_groups, list_offsets, metadata, offset_commit, offset_delete, offset_fetch,
    offset_for_leader_epoch, produce, sync_group,
};
use crate::protocol::request::Request;

/// A request that has taken its place in the order of effects.
pub struct Dispatch {
    pub reply: PendingReply,
    /// The connection's next request must not start before this one is completed.
    pub is_exclusive: bool,
    /// The request's bytes count as in flight until it is answered. Not those of one that may wait for other clients: of these it keeps
    /// nothing, and they would keep others from being read.
    pub holds_bytes: bool,
}

/// The codec refused a body that the walk over its shape let through. The connection is closed.
#[derive(Debug, thiserror::Error)]
#[error("{key:?} version {version}: {reason}")]
pub struct DecodeError {
    key: ApiKey,
    version: i16,
    reason: String,
}

/// What decides how large the reply to such a request is.
pub fn reply_size(key: ApiKey) -> ReplySize {
    match key {
        ApiKey::Fetch => ReplySize::OfGrant,
        ApiKey::Metadata
        | ApiKey::DescribeConfigs
        | ApiKey::DescribeLogDirs
        | ApiKey::DescribeProducers
        | ApiKey::DescribeTopicPartitions
        | ApiKey::DescribeGroups
        | ApiKey::ListConfigResources
        | ApiKey::ListGroups
        | ApiKey::OffsetFetch => ReplySize::OfState,
        // Joining brings the members' data to the leader, but must not wait for one another: two members may share a connection.
        _ => ReplySize::OfRequest,
    }
}

/// Decodes the body and hands it to its API. A fetch takes its place in `replies` itself.
pub fn dispatch(
    context: &ApiContext,
    replies: &ReplyBudget,
    request: Request,
) -> Result<Dispatch, DecodeError> {
    let id = RequestId::from(&request);
    let client_id = request.client_id;
    let body = Body {
        id,
        bytes: request.body,
    };
    let shared = |reply| {
        Ok(Dispatch {
            reply,
            is_exclusive: false,
            holds_bytes: true,
        })
    };
    let waiting = |reply| {
        Ok(Dispatch {
            reply,
            is_exclusive: false,
            holds_bytes: false,
        })
    };
    match id.key {
        ApiKey::Produce => shared(produce::dispatch(context, id, body.decode()?)),
        ApiKey::Fetch => shared(fetch::dispatch(context, replies, id, body.decode()?)),
        ApiKey::ListOffsets => shared(list_offsets::dispatch(context, id, body.decode()?)),
        ApiKey::OffsetForLeaderEpoch => shared(offset_for_leader_epoch::dispatch(
            context,
            id,
            body.decode()?,
        )),
        ApiKey::DeleteRecords => shared(delete_records::dispatch(context, id, body.decode()?)),
        ApiKey::DescribeLogDirs => shared(describe_log_dirs::dispatch(context, id, body.decode()?)),
        ApiKey::DescribeProducers => {
            shared(describe_producers::dispatch(context, id, body.decode()?))
        }
        ApiKey::OffsetCommit => shared(offset_commit::dispatch(context, id, body.decode()?)),
        ApiKey::OffsetFetch => shared(offset_fetch::dispatch(context, id, body.decode()?)),
        ApiKey::OffsetDelete => shared(offset_delete::dispatch(context, id, body.decode()?)),
        ApiKey::JoinGroup => waiting(join_group::dispatch(
            context,
            id,
            &client_id,
            body.decode()?,
        )),
        ApiKey::SyncGroup => waiting(sync_group::dispatch(context, id, body.decode()?)),
        ApiKey::Heartbeat => shared(heartbeat::dispatch(context, id, body.decode()?)),
        ApiKey::LeaveGroup => shared(leave_group::dispatch(context, id, body.decode()?)),
        ApiKey::DescribeGroups => shared(describe_groups::dispatch(context, id, body.decode()?)),
        ApiKey::ListGroups => shared(list_groups::dispatch(context, id, body.decode()?)),
        ApiKey::DeleteGroups => shared(delete_groups::dispatch(context, id, body.decode()?)),
        ApiKey::ApiVersions => body.answer(context, api_versions::handle),
        ApiKey::Metadata => body.answer(context, metadata::handle),
        ApiKey::FindCoordinator => body.answer(context, find_coordinator::handle),
        ApiKey::InitProducerId => body.answer(context, init_producer_id::handle),
        ApiKey::CreateTopics => body.answer(context, create_topics::handle),
        ApiKey::DeleteTopics => body.answer(context, delete_topics::handle),
        ApiKey::CreatePartitions => body.answer(context, create_partitions::handle),
        ApiKey::DescribeConfigs => body.answer(context, describe_configs::handle),
        ApiKey::AlterConfigs => body.answer(context, alter_configs::handle),
        ApiKey::IncrementalAlterConfigs => body.answer(context, incremental_alter_configs::handle),
        ApiKey::DescribeCluster => body.answer(context, describe_cluster::handle),
        ApiKey::DescribeTopicPartitions => body.answer(context, describe_topic_partitions::handle),
        ApiKey::ListConfigResources => body.answer(context, list_config_resources::handle),
        key => unreachable!("{key:?} is in the table of served APIs but has no handler"),
    }
}

/// What answers an ApiVersions request of a version that is not served.
pub fn unsupported_api_versions(correlation_id: i32) -> (RequestId, Dispatch) {
    let reply = crate::protocol::api_versions::unsupported(correlation_id);
    let reply = reply.map(|bytes| Reply {
        pieces: vec![bytes],
        ..Reply::default()
    });
    let id = RequestId {
        key: ApiKey::ApiVersions,
        version: 0,
        correlation_id,
    };
    let dispatch = Dispatch {
        reply: Box::pin(std::future::ready(reply)),
        is_exclusive: false,
        holds_bytes: true,
    };
    (id, dispatch)
}

struct Body {
    id: RequestId,
    bytes: Bytes,
}

impl Body {
    fn decode<T: Decodable>(mut self) -> Result<T, DecodeError> {
        let RequestId { key, version, .. } = self.id;
        T::decode(&mut self.bytes, version).map_err(|error| DecodeError {
            key,
            version,
            reason: format!("{error:#}"),
        })
    }

    /// For an API that is answered as a whole, by a future that starts when the requests before it are answered.
    fn answer<Q, R, F>(
        self,
        context: &ApiContext,
        handle: impl FnOnce(ApiContext, Q, i16) -> F,
    ) -> Result<Dispatch, DecodeError>
    where
        Q: Decodable,
        R: Encodable,
        F: Future<Output = R> + 'static,
    {
        let id = self.id;
        let response = handle(context.clone(), self.decode()?, id.version);
        Ok(Dispatch {
            reply: Box::pin(async move { Reply::of(&id, &response.await) }),
            is_exclusive: true,
            holds_bytes: true,
        })
    }
}
