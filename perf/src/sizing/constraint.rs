//! What limits a cluster: how much the load takes of a resource, and how much of it one broker has. Everything is
//! spread evenly over the brokers, so each constraint is a division, in whole numbers, rounded up.

use serde::Serialize;

use super::broker_capacity::{BrokerCapacity, CPU_UNITS_PER_CORE};
use super::demand::Demand;
use super::notation;
use crate::quantity::Percent;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    DiskBandwidth,
    DiskSpace,
    NetworkIn,
    NetworkOut,
    Cpu,
    Partitions,
    Memory,
    /// Each copy of a partition is on a broker of its own.
    Copies,
}

impl Resource {
    pub fn name(self) -> &'static str {
        match self {
            Self::DiskBandwidth => "disk bandwidth",
            Self::DiskSpace => "disk space",
            Self::NetworkIn => "network in",
            Self::NetworkOut => "network out",
            Self::Cpu => "CPU",
            Self::Partitions => "partitions",
            Self::Memory => "memory",
            Self::Copies => "copies",
        }
    }

    /// For I ingest, R copies, F reader groups, Q Produce requests, T retention, P partitions; of the cluster, which n brokers share.
    pub fn formula(self) -> &'static str {
        match self {
            Self::DiskBandwidth | Self::NetworkIn => "I*R",
            Self::DiskSpace => "I*R*T, I on average",
            Self::NetworkOut => "I*(R-1+F)",
            Self::Cpu => {
                "I*(c_lead + (R-1)*(c_send + c_follow) + F*c_fetch) + Q*(c_request + F*c_fetch_request) + P*R*c_partition"
            }
            Self::Partitions => "P*R",
            Self::Memory => "P*R*bytes + I*R*cached",
            Self::Copies => "R",
        }
    }

    /// An amount in this resource's own unit, as people write it.
    pub fn amount(self, amount: f64) -> String {
        match self {
            Self::DiskBandwidth | Self::NetworkIn | Self::NetworkOut => {
                notation::bytes_per_s(amount)
            }
            Self::DiskSpace | Self::Memory => notation::bytes(amount),
            Self::Cpu => format!(
                "{} cores",
                notation::number(amount / CPU_UNITS_PER_CORE as f64)
            ),
            Self::Partitions | Self::Copies => notation::number(amount),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::DiskBandwidth | Self::NetworkIn | Self::NetworkOut => "bytes_per_s",
            Self::DiskSpace | Self::Memory => "bytes",
            Self::Cpu => "cores",
            Self::Partitions => "partition_copies",
            Self::Copies => "brokers",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Constraint {
    pub resource: Resource,
    pub cluster_needs: u128,
    pub broker_has: u128,
}

impl Constraint {
    pub fn disk_bandwidth(demand: &Demand, disk_bytes_per_s: u64) -> Self {
        Self {
            resource: Resource::DiskBandwidth,
            cluster_needs: u128::from(demand.peak_bytes_per_s()) * u128::from(demand.copies.value),
            broker_has: u128::from(disk_bytes_per_s),
        }
    }

    pub fn network_in(demand: &Demand, nic_bytes_per_s: u64) -> Self {
        Self {
            resource: Resource::NetworkIn,
            ..Self::disk_bandwidth(demand, nic_bytes_per_s)
        }
    }

    /// All but the copies: what is shared by the brokers, however many they are.
    pub fn all(demand: &Demand, broker: &BrokerCapacity) -> Vec<Self> {
        let peak = u128::from(demand.peak_bytes_per_s());
        let copies = u128::from(demand.copies.value);
        let readers = u128::from(demand.reader_groups.value);
        let partition_copies = u128::from(demand.partitions.value) * copies;
        let of = |resource, cluster_needs, broker_has: u64| Self {
            resource,
            cluster_needs,
            broker_has: u128::from(broker_has),
        };
        vec![
            Self::disk_bandwidth(demand, broker.disk_bytes_per_s.value),
            of(
                Resource::DiskSpace,
                demand.kept_bytes(),
                broker.disk_bytes.value,
            ),
            Self::network_in(demand, broker.nic_bytes_per_s.value),
            of(
                Resource::NetworkOut,
                peak * (copies - 1 + readers),
                broker.nic_bytes_per_s.value,
            ),
            Self {
                resource: Resource::Cpu,
                cluster_needs: broker.cost.cluster_cpu(demand),
                broker_has: u128::from(broker.cores.value) * CPU_UNITS_PER_CORE,
            },
            of(
                Resource::Partitions,
                partition_copies,
                broker.partitions_max.value,
            ),
            of(
                Resource::Memory,
                partition_copies * u128::from(broker.partition_memory_bytes.value)
                    + peak * copies * u128::from(demand.cached_s.value),
                broker.memory_bytes.value,
            ),
        ]
    }

    /// Brokers that give enough if each uses no more than this share of what it has.
    pub fn brokers(&self, used: Percent) -> u64 {
        let of_all = u128::from(Percent::ALL.hundredths);
        let brokers = self
            .cluster_needs
            .saturating_mul(of_all)
            .div_ceil(self.broker_has * u128::from(used.hundredths))
            .max(1);
        u64::try_from(brokers).unwrap_or(u64::MAX)
    }

    pub fn per_broker(&self, brokers: u64) -> f64 {
        self.cluster_needs as f64 / brokers as f64
    }

    /// The share of what each broker has that this many brokers use: 1 is all.
    pub fn utilisation(&self, brokers: u64) -> f64 {
        self.per_broker(brokers) / self.broker_has as f64
    }

    /// Without rounding up, to tell which of two binds.
    pub fn brokers_exact(&self) -> f64 {
        self.cluster_needs as f64 / self.broker_has as f64
    }
}

/// A constraint at a number of brokers.
#[derive(Clone, Debug, Serialize)]
pub struct ConstraintReport {
    pub resource: Resource,
    pub formula: &'static str,
    pub unit: &'static str,
    pub cluster_needs: f64,
    pub broker_has: f64,
    pub brokers_at_full: u64,
    pub brokers_at_headroom: u64,
    /// At the chosen number of brokers, and when one of them is lost: 1 is all.
    pub utilisation: f64,
    pub utilisation_one_lost: Option<f64>,
    #[serde(skip)]
    pub shown: Shown,
}

/// The amounts as people write them.
#[derive(Clone, Debug)]
pub struct Shown {
    pub cluster_needs: String,
    pub broker_has: String,
}

impl ConstraintReport {
    pub fn at(constraint: &Constraint, brokers: u64, headroom: Percent) -> Self {
        let Constraint {
            resource,
            cluster_needs,
            broker_has,
        } = *constraint;
        let scale = match resource {
            Resource::Cpu => CPU_UNITS_PER_CORE as f64,
            _ => 1.0,
        };
        Self {
            resource,
            formula: resource.formula(),
            unit: resource.unit(),
            cluster_needs: cluster_needs as f64 / scale,
            broker_has: broker_has as f64 / scale,
            brokers_at_full: constraint.brokers(Percent::ALL),
            brokers_at_headroom: constraint.brokers(headroom),
            utilisation: constraint.utilisation(brokers),
            utilisation_one_lost: (brokers > 1).then(|| constraint.utilisation(brokers - 1)),
            shown: Shown {
                cluster_needs: resource.amount(cluster_needs as f64),
                broker_has: resource.amount(broker_has as f64),
            },
        }
    }
}

/// How many brokers, by how careful one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BrokerCounts {
    pub at_full: u64,
    pub one_lost: u64,
    pub at_headroom: u64,
    pub at_headroom_one_lost: u64,
}

impl BrokerCounts {
    /// A lost broker's share of the load goes to the others, so one more carries it; and there are never fewer
    /// brokers than copies.
    pub fn of(constraints: &[Constraint], copies: u64, headroom: Percent) -> Self {
        let most = |used: Percent| {
            let brokers = constraints
                .iter()
                .map(|constraint| constraint.brokers(used));
            brokers.max().unwrap_or(1)
        };
        let (full, roomy) = (most(Percent::ALL), most(headroom));
        Self {
            at_full: full.max(copies),
            one_lost: full.saturating_add(1).max(copies),
            at_headroom: roomy.max(copies),
            at_headroom_one_lost: roomy.saturating_add(1).max(copies),
        }
    }
}

/// Which constraint asks for the most brokers.
pub fn binding(constraints: &[Constraint], copies: u64) -> Resource {
    let most = constraints
        .iter()
        .max_by(|a, b| a.brokers_exact().total_cmp(&b.brokers_exact()));
    match most {
        Some(constraint) if constraint.brokers(Percent::ALL) >= copies => constraint.resource,
        _ => Resource::Copies,
    }
}
