//! One client connection: two tasks of one core. The one receives and dispatches, the other awaits replies in order and sends them.

use std::io::IoSlice;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;

use crate::api::admin_context::AdminContext;
use crate::api::context::ApiContext;
use crate::api::dispatch;
use crate::api::reply::RequestId;
use crate::api::reply_budget::ReplySize;
use crate::io::executor;
use crate::io::net::{Connection, NetError, Reader, Writer};
use crate::io::recv::RecvPool;
use crate::metrics::Gauge;
use crate::model::limits::REPLIES_AFTER_END_MS;
use crate::protocol::request::{Request, RequestError};
use crate::server::admission::Admission;
use crate::server::frame_receiver::{FrameReceiver, ReceiveError, Received};
use crate::server::in_flight::Unfinished;
use crate::server::pace::Pace;
use crate::server::response_order::{Completed, Dispatched, ResponseOrder};
use crate::server::roster::{Entry, Presence, Sending};

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Response(#[from] crate::protocol::response::ResponseError),
    #[error("the request does not decode: {0}")]
    Decode(dispatch::DecodeError),
}

impl ConnectionEnd {
    /// Nobody's fault: the peer went away.
    pub fn is_ordinary(&self) -> bool {
        match self {
            Self::Receive(ReceiveError::Net(error)) => error.is_disconnect(),
            Self::Receive(ReceiveError::EndInsideFrame) => true,
            _ => false,
        }
    }
}

/// Which of a connection's two tasks ended first.
enum First {
    Received(Result<(), ConnectionEnd>),
    Sent(Result<(), NetError>),
}

/// Serves a connection until one side ends it.
pub async fn serve(
    connection: Connection,
    context: ApiContext,
    pool: RecvPool,
    admission: Admission,
    entry: Entry,
) -> Result<(), ConnectionEnd> {
    context.shard.metrics().raise_gauge(Gauge::Connections, 1);
    let closer = connection.closer();
    let mark = connection.low_water_mark();
    let (reader, writer) = connection.split();
    let order = ResponseOrder::default();
    let pace = Rc::new(Pace::new(mark, order.clone()));
    let mut replies = executor::spawn_local({
        let (order, context, presence) = (order.clone(), context.clone(), entry.presence.clone());
        let pace = pace.clone();
        async move { send_replies(writer, order, &pace, &context, &presence).await }
    });
    let receiving = receive(
        reader,
        &context,
        pool,
        admission,
        &order,
        &pace,
        &entry.presence,
    );
    // What has been asked can no longer be answered once sending has ended, and what is received may wait for that for ever.
    let first = future::or(async { First::Received(receiving.await) }, async {
        First::Sent((&mut replies).await)
    });
    let (received, sent) = match first.await {
        First::Sent(sent) => (Ok(()), Ok(sent)),
        First::Received(received) => {
            order.close();
            // A request may wait for other clients, longer than is of use to one that has gone.
            let limit = Duration::from_millis(REPLIES_AFTER_END_MS);
            (received, executor::timeout(limit, replies).await)
        }
    };
    closer.close();
    if let Ok(Err(error)) = sent
        && !error.is_disconnect()
    {
        tracing::debug!(%error, "a connection ended while sending");
    }
    context.shard.metrics().lower_gauge(Gauge::Connections, 1);
    received
}

async fn receive(
    mut reader: Reader,
    context: &ApiContext,
    pool: RecvPool,
    admission: Admission,
    order: &ResponseOrder,
    pace: &Pace,
    presence: &Presence,
) -> Result<(), ConnectionEnd> {
    let mut receiver = FrameReceiver::new(pool, context.config().request_max_bytes);
    let router = context.shard.router();
    let mut unfinished = Unfinished::default();
    loop {
        let wanted_bytes = receiver.wanted_bytes();
        let ready = admission.ready_to_receive(router, &mut unfinished, wanted_bytes);
        presence.without_haste(context.shard.clock(), ready).await;
        pace.before_receive(receiver.missing_bytes());
        let frames = match receiver.receive(&mut reader).await? {
            Received::Part => {
                if presence.receiving_since.get().is_none() {
                    presence
                        .receiving_since
                        .set(Some(context.shard.clock().monotonic()));
                }
                presence.idle_since.set(None);
                continue;
            }
            Received::Frames(frames) => frames,
            Received::End => return Ok(()),
        };
        let frames_bytes = frames.iter().map(Bytes::len).sum();
        let mut undispatched = admission.quota.take_bytes(frames_bytes);
        unfinished = Unfinished::default();
        let now = context.shard.clock().monotonic();
        presence
            .receiving_since
            .set(receiver.is_inside_frame().then_some(now));
        presence.idle_since.set(None);
        for frame in frames {
            let frame_bytes = frame.len() + crate::protocol::frame::SIZE_PREFIX_BYTES;
            let (size, request) = match Request::decode(&frame) {
                Ok(request) => (dispatch::reply_size(request.key), Ok(request)),
                Err(RequestError::UnknownApiVersions { correlation_id, .. }) => {
                    (ReplySize::OfRequest, Err(correlation_id))
                }
                Err(error) => return Err(error.into()),
            };
            let ready = admission.ready_to_dispatch(router, size);
            presence.without_haste(context.shard.clock(), ready).await;
            let mut admitted = admission.take(&mut undispatched, frame.len(), size);
            let (id, dispatched) = match request {
                Ok(request) => {
                    let id = RequestId::from(&request);
                    let dispatched = dispatch::dispatch(context, &admission.replies, request);
                    (id, dispatched.map_err(ConnectionEnd::Decode)?)
                }
                Err(correlation_id) => dispatch::unsupported_api_versions(correlation_id),
            };
            if !dispatched.holds_bytes {
                admitted.permit.release_bytes();
            }
            order.push(Dispatched {
                id,
                reply: dispatched.reply,
                received_at: now,
                frame_bytes,
                admitted,
            });
            if dispatched.is_exclusive {
                let drained = order.drained();
                presence.without_haste(context.shard.clock(), drained).await;
            }
            // A buffer holds thousands of small requests, and other connections wait.
            executor::yield_if_needed().await;
        }
    }
}

async fn send_replies(
    mut writer: Writer,
    order: ResponseOrder,
    pace: &Pace,
    context: &ApiContext,
    presence: &Rc<Presence>,
) -> Result<(), NetError> {
    while let Some(first) = order.next().await {
        let mut ready = vec![first];
        while let Some(next) = order.next_ready().await {
            ready.push(next);
        }
        presence.sending.begins();
        let closes = send(&mut writer, &ready, &presence.sending).await?;
        presence.sending.ended();
        let now = context.shard.clock().monotonic();
        for Completed {
            id,
            reply,
            received_at,
            frame_bytes,
            ..
        } in &ready
        {
            let Ok(reply) = reply else { continue };
            let total_ns = now.since(*received_at).as_nanos() as u64;
            let metrics = context.shard.metrics();
            metrics.record_request(id.key as i16, *frame_bytes, reply.len(), total_ns);
            for code in &reply.error_codes {
                metrics.record_error(id.key as i16, *code);
            }
        }
        drop(ready);
        pace.after_replies();
        if order.is_empty() {
            presence.idle_since.set(Some(now));
        }
        if closes {
            break;
        }
    }
    writer.finish();
    Ok(())
}

/// Sends replies one behind the other; says whether the connection must be closed after them.
async fn send(
    writer: &mut Writer,
    ready: &[Completed],
    sending: &Sending,
) -> Result<bool, NetError> {
    let mut closes = false;
    let mut slices = Vec::with_capacity(ready.len() * 2);
    for completed in ready {
        match &completed.reply {
            Ok(reply) => {
                slices.extend(reply.pieces.iter().map(|piece| IoSlice::new(piece)));
                closes |= reply.closes;
            }
            Err(error) => {
                tracing::error!(%error, "a bug: a response does not encode; its connection is closed");
                closes = true;
            }
        }
        if closes {
            break;
        }
    }
    writer
        .write_all(&mut slices, || sending.progressed())
        .await?;
    Ok(closes)
}
