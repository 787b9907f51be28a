/// A group's state, by Kafka's names.
///
/// ```text
///            first member                all members joined, or
///          ┌──────────────┐              the rebalance time-out
///  Empty ──┘              └─> PreparingRebalance ──────────────────> CompletingRebalance
///    ^                            ^   │    ^                          │   leader's assignment
///    │      no member is left     │   │    │ somebody joins, leaves,  │   is on disk
///    └────────────────────────────┼───┘    │ is late or dies          v
///                                 │        └───────────────────────── ┤
///                                 └────────────────────────────────── Stable
/// ```
///
/// `Dead`: the group is not known, or its end is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
    Dead,
}

impl GroupState {
    const ALL: [Self; 5] = [
        Self::Empty,
        Self::PreparingRebalance,
        Self::CompletingRebalance,
        Self::Stable,
        Self::Dead,
    ];

    /// As Kafka's tools print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    /// The state of that name, in capitals or not, as ListGroups takes it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|state| state.name().eq_ignore_ascii_case(name))
    }
}
