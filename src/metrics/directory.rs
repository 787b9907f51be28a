use super::single_writer::SingleWriterU64;

/// The file system of the log directory, as the one shard that looks at it has seen it last.
#[derive(Debug, Default)]
pub struct DirectoryFigures {
    used_bytes: SingleWriterU64,
    free_bytes: SingleWriterU64,
    refused_from_bytes: SingleWriterU64,
    guard_level: SingleWriterU64,
}

/// One look at the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectorySpace {
    pub used_bytes: u64,
    pub free_bytes: u64,
    /// How much may be in use before produce is refused.
    pub refused_from_bytes: u64,
    /// 0: everything is appended; 1: only the broker's own topics; 2: nothing.
    pub guard_level: u64,
}

impl DirectoryFigures {
    pub(super) fn record(&self, space: DirectorySpace) {
        self.used_bytes.set(space.used_bytes);
        self.free_bytes.set(space.free_bytes);
        self.refused_from_bytes.set(space.refused_from_bytes);
        self.guard_level.set(space.guard_level);
    }

    /// All zero before the first look.
    pub fn space(&self) -> DirectorySpace {
        DirectorySpace {
            used_bytes: self.used_bytes.get(),
            free_bytes: self.free_bytes.get(),
            refused_from_bytes: self.refused_from_bytes.get(),
            guard_level: self.guard_level.get(),
        }
    }
}

impl DirectorySpace {
    /// From 0 to 1; 0 before the first look.
    pub fn used_ratio(self) -> f64 {
        match self.used_bytes.saturating_add(self.free_bytes) {
            0 => 0.0,
            total => self.used_bytes as f64 / total as f64,
        }
    }

    /// How long it takes at this many more bytes a second until produce is refused; infinitely long where nothing grows.
    pub fn seconds_until_full(self, bytes_per_second: f64) -> f64 {
        let left_bytes = self.refused_from_bytes.saturating_sub(self.used_bytes);
        if self.guard_level > 0 {
            0.0
        } else if bytes_per_second > 0.0 {
            left_bytes as f64 / bytes_per_second
        } else {
            f64::INFINITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_ends_where_produce_is_refused() {
        let mut space = DirectorySpace {
            used_bytes: 80,
            free_bytes: 20,
            refused_from_bytes: 95,
            guard_level: 0,
        };
        assert_eq!(space.used_ratio(), 0.8);
        assert_eq!(space.seconds_until_full(5.0), 3.0);
        assert_eq!(space.seconds_until_full(0.0), f64::INFINITY);
        assert_eq!(space.seconds_until_full(-5.0), f64::INFINITY);
        space.guard_level = 1;
        assert_eq!(space.seconds_until_full(5.0), 0.0);
    }
}
