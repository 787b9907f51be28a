//! The topics: names, ids, and the offset that comes next in each partition.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

pub struct Topics {
    address: SocketAddr,
    partitions: u32,
    by_name: Mutex<BTreeMap<String, Arc<Topic>>>,
    next_producer_id: AtomicI64,
}

pub struct Topic {
    pub id: Uuid,
    next_offsets: Vec<AtomicI64>,
}

impl Topics {
    pub fn new(address: SocketAddr, partitions: u32) -> Self {
        Self {
            address,
            partitions,
            by_name: Mutex::default(),
            next_producer_id: AtomicI64::new(0),
        }
    }

    /// Where clients find the one broker.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The topic, created with the default number of partitions if it is not there.
    pub fn get(&self, name: &str) -> Arc<Topic> {
        let mut by_name = self.lock();
        if let Some(topic) = by_name.get(name) {
            return topic.clone();
        }
        let topic = Arc::new(Topic::new(self.partitions));
        by_name.insert(name.to_owned(), topic.clone());
        topic
    }

    /// None if there is one of that name already.
    pub fn create(&self, name: &str, partitions: Option<u32>) -> Option<Arc<Topic>> {
        let mut by_name = self.lock();
        if by_name.contains_key(name) {
            return None;
        }
        let topic = Arc::new(Topic::new(partitions.unwrap_or(self.partitions)));
        by_name.insert(name.to_owned(), topic.clone());
        Some(topic)
    }

    /// Whether it was there.
    pub fn delete(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub fn new_producer_id(&self) -> i64 {
        self.next_producer_id.fetch_add(1, Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Topic>>> {
        // A map is whole between any two of its calls, whoever panicked.
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Topic {
    fn new(partitions: u32) -> Self {
        Self {
            id: Uuid::new_v4(),
            next_offsets: (0..partitions).map(|_| AtomicI64::new(0)).collect(),
        }
    }

    pub fn partition_count(&self) -> i32 {
        self.next_offsets.len() as i32
    }

    /// The base offset of `record_count` records; None if there is no such partition.
    pub fn append(&self, partition: i32, record_count: i64) -> Option<i64> {
        Some(self.partition(partition)?.fetch_add(record_count, Relaxed))
    }

    /// The offset that comes next.
    pub fn end(&self, partition: i32) -> Option<i64> {
        Some(self.partition(partition)?.load(Relaxed))
    }

    fn partition(&self, partition: i32) -> Option<&AtomicI64> {
        self.next_offsets.get(usize::try_from(partition).ok()?)
    }
}
