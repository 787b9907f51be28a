//! Lanes between real executors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::io::executor::{Core, ExecutorThread, block_on, sleep, spawn, spawn_local, timeout};
use crate::model::limits::{MESH_LANE_BATCHES_MAX, MESH_QUEUE_MESSAGES_MAX};

/// One executor per member, each of which runs `main` on its end.
fn run_members<T, R, M>(
    member_count: usize,
    main: impl Fn(MeshEnd<T>) -> M + Send + Clone + 'static,
) -> Vec<R>
where
    T: Send + 'static,
    R: Send + 'static,
    M: Future<Output = R> + 'static,
{
    let threads: Vec<ExecutorThread<R>> = seats(member_count)
        .into_iter()
        .map(|seat| {
            let main = main.clone();
            let name = format!("member-{}", seat.member());
            spawn(&name, Core::Unpinned, move || async move {
                main(seat.join().await).await
            })
            .expect("an executor")
        })
        .collect();
    threads.into_iter().map(ExecutorThread::join).collect()
}

#[test]
fn every_member_hears_every_other_in_the_order_of_the_pushes() {
    const MESSAGES: usize = 5_000;
    run_members(3, |end: MeshEnd<(usize, usize)>| async move {
        let MeshEnd {
            member,
            outbox,
            inboxes,
        } = end;
        let sending = spawn_local(async move {
            for number in 0..MESSAGES {
                for target in (0..outbox.member_count()).filter(|target| *target != member) {
                    outbox.ready(target).await;
                    outbox.push(target, (member, number));
                }
            }
            outbox
        });
        assert_eq!(inboxes.len(), 2);
        for mut inbox in inboxes {
            let mut next = 0;
            while next < MESSAGES {
                for message in inbox
                    .recv()
                    .await
                    .expect("a member that has not sent everything yet")
                {
                    assert_eq!(message, (inbox.peer(), next));
                    next += 1;
                }
            }
        }
        let outbox = sending.await;
        // Ends only when nobody has anything left to take from it.
        while (0..3).any(|target| target != member && outbox.untaken_count(target) > 0) {
            sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn the_pushes_of_one_turn_travel_as_one_batch() {
    run_members(2, |end: MeshEnd<u32>| async move {
        let MeshEnd {
            member,
            outbox,
            mut inboxes,
        } = end;
        if member == 0 {
            for number in 0..100 {
                outbox.push(1, number);
            }
            assert_eq!(inboxes[0].recv().await, Some(vec![0]), "the answer");
        } else {
            assert_eq!(inboxes[0].recv().await, Some((0..100).collect()));
            outbox.push(0, 0);
            assert_eq!(inboxes[0].recv().await, None, "the other member has ended");
        }
    });
}

#[test]
fn a_member_that_does_not_take_makes_its_lane_full_until_it_does() {
    let taken = Arc::new(AtomicUsize::new(0));
    run_members(2, move |end: MeshEnd<usize>| {
        let taken = Arc::clone(&taken);
        async move {
            let MeshEnd {
                member,
                outbox,
                mut inboxes,
            } = end;
            let total = MESH_QUEUE_MESSAGES_MAX + 1;
            if member == 0 {
                for number in 0..MESH_QUEUE_MESSAGES_MAX {
                    assert!(!outbox.is_full(1), "full after {number}");
                    outbox.push(1, number);
                }
                assert!(outbox.is_full(1));
                assert!(
                    timeout(Duration::from_millis(20), outbox.ready(1))
                        .await
                        .is_err(),
                    "nobody took anything"
                );
                // The other member has not been told to start.
                assert_eq!(taken.load(Ordering::Acquire), 0);
                outbox.push(1, MESH_QUEUE_MESSAGES_MAX);
                taken.store(1, Ordering::Release);
                timeout(Duration::from_secs(30), outbox.ready(1))
                    .await
                    .expect("room");
                assert_eq!(inboxes[0].recv().await, Some(vec![total]));
            } else {
                while taken.load(Ordering::Acquire) == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
                let mut received = Vec::new();
                while received.len() < total {
                    received.extend(inboxes[0].recv().await.expect("a message"));
                }
                assert_eq!(received, (0..total).collect::<Vec<_>>());
                outbox.push(0, total);
                assert_eq!(inboxes[0].recv().await, None);
            }
        }
    });
}

#[test]
fn batches_that_find_no_slot_are_joined_and_arrive_in_order() {
    run_members(2, |end: MeshEnd<usize>| async move {
        let MeshEnd {
            member,
            outbox,
            mut inboxes,
        } = end;
        const TURNS: usize = 10 * MESH_LANE_BATCHES_MAX;
        if member == 0 {
            for turn in 0..TURNS {
                outbox.push(1, turn);
                outbox.flush();
            }
            assert_eq!(inboxes[0].recv().await, Some(vec![TURNS]));
        } else {
            sleep(Duration::from_millis(20)).await;
            let mut batches = Vec::new();
            while batches.iter().map(Vec::len).sum::<usize>() < TURNS {
                batches.push(inboxes[0].recv().await.expect("a batch"));
            }
            assert!(batches.iter().all(|batch| !batch.is_empty()));
            assert_eq!(batches.concat(), (0..TURNS).collect::<Vec<_>>());
            outbox.push(0, TURNS);
            assert_eq!(inboxes[0].recv().await, None);
        }
    });
}

#[test]
fn messages_to_a_member_that_has_ended_are_dropped() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let in_members = Arc::clone(&dropped);
    run_members(2, move |end: MeshEnd<Counted>| {
        let dropped = Arc::clone(&in_members);
        async move {
            let MeshEnd {
                member,
                outbox,
                mut inboxes,
            } = end;
            if member == 0 {
                assert!(
                    inboxes[0].recv().await.is_none(),
                    "the other member ends at once"
                );
                for _ in 0..3 {
                    outbox.push(1, Counted(Arc::clone(&dropped)));
                }
                outbox.flush();
                assert_eq!(outbox.untaken_count(1), 0);
            }
        }
    });
    assert_eq!(dropped.load(Ordering::Relaxed), 3);
}

#[test]
#[should_panic(expected = "sends nothing to itself")]
fn a_member_does_not_send_to_itself() {
    block_on(async {
        let end = seats::<u8>(1).remove(0).join().await;
        end.outbox.push(0, 1);
    });
}

#[test]
fn a_foreign_thread_reaches_a_sleeping_executor_through_its_lane() {
    block_on(async {
        let (sender, mut receiver) = foreign_lane(4);
        let thread = std::thread::spawn(move || {
            for number in 0..100 {
                std::thread::sleep(Duration::from_micros(300));
                let mut message = number;
                while let Err(ForeignSendError::Full(again)) = sender.clone().try_send(message) {
                    message = again;
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..100 {
            assert_eq!(receiver.recv().await, Some(number));
        }
        assert_eq!(receiver.recv().await, None, "the last sender is gone");
        thread.join().expect("the sender");
    });
}

#[test]
fn a_foreign_lane_is_bounded_and_knows_when_its_receiver_is_gone() {
    let (sender, receiver) = foreign_lane(2);
    assert_eq!(sender.try_send(1), Ok(()));
    assert_eq!(sender.try_send(2), Ok(()));
    assert_eq!(sender.try_send(3), Err(ForeignSendError::Full(3)));
    drop(receiver);
    assert_eq!(sender.try_send(4), Err(ForeignSendError::Closed(4)));
}
