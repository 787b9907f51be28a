//! A run of a segment's bytes in memory, in one or more pieces, none of them copied.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::model::FilePosition;

#[derive(Clone, Debug)]
pub struct ByteRun {
    start: FilePosition,
    end: FilePosition,
    pieces: SmallVec<[Bytes; 4]>,
}

impl ByteRun {
    pub fn starting_at(start: FilePosition) -> Self {
        Self {
            start,
            end: start,
            pieces: SmallVec::new(),
        }
    }

    /// Adds the bytes that follow.
    pub fn push(&mut self, piece: Bytes) {
        self.end = self.end.plus(piece.len() as u64);
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
    }

    pub fn start(&self) -> FilePosition {
        self.start
    }

    pub fn end(&self) -> FilePosition {
        self.end
    }

    pub fn len(&self) -> usize {
        (self.end.0 - self.start.0) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `out.len()` bytes from `position` on; false if the run does not hold them all.
    pub fn copy_at(&self, position: FilePosition, out: &mut [u8]) -> bool {
        if position < self.start || position.plus(out.len() as u64) > self.end {
            return false;
        }
        let mut skip = (position.0 - self.start.0) as usize;
        let mut filled = 0;
        for piece in &self.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let now = (piece.len() - skip).min(out.len() - filled);
            out[filled..filled + now].copy_from_slice(&piece[skip..skip + now]);
            filled += now;
            skip = 0;
            if filled == out.len() {
                break;
            }
        }
        true
    }

    /// The bytes from `start` to `end`, piece by piece; both must lie in the run.
    pub fn pieces(&self, start: FilePosition, end: FilePosition) -> impl Iterator<Item = &[u8]> {
        assert!(
            self.start <= start && start <= end && end <= self.end,
            "{start}..{end} is not in the run"
        );
        let mut skip = (start.0 - self.start.0) as usize;
        let mut left = (end.0 - start.0) as usize;
        self.pieces.iter().filter_map(move |piece| {
            let from = skip.min(piece.len());
            skip -= from;
            let part = &piece[from..][..left.min(piece.len() - from)];
            left -= part.len();
            (!part.is_empty()).then_some(part)
        })
    }

    /// The part from `start` to `end`; both must lie in the run.
    pub fn cut(mut self, start: FilePosition, end: FilePosition) -> Self {
        assert!(
            self.start <= start && start <= end && end <= self.end,
            "{start}..{end} is not in the run"
        );
        let mut skip = (start.0 - self.start.0) as usize;
        let mut take = (end.0 - start.0) as usize;
        let mut pieces = SmallVec::new();
        for mut piece in self.pieces.drain(..) {
            let front = skip.min(piece.len());
            let _ = piece.split_to(front);
            skip -= front;
            piece.truncate(take);
            take -= piece.len();
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
        Self { start, end, pieces }
    }

    pub fn into_pieces(self) -> SmallVec<[Bytes; 4]> {
        self.pieces
    }

    /// One contiguous copy, or the piece itself where there is only one.
    pub fn to_contiguous(&self) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [only] => only.clone(),
            many => Bytes::from(many.concat()),
        }
    }

    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_and_copying_cross_piece_borders() {
        let mut run = ByteRun::starting_at(FilePosition(100));
        for piece in ["abc", "", "defg", "h"] {
            run.push(Bytes::from_static(piece.as_bytes()));
        }
        let mut out = [0; 4];
        assert!(run.copy_at(FilePosition(102), &mut out));
        assert_eq!(&out, b"cdef");
        assert!(!run.copy_at(FilePosition(105), &mut out));
        assert!(!run.copy_at(FilePosition(99), &mut out));
        let pieces: Vec<_> = run.pieces(FilePosition(102), FilePosition(105)).collect();
        assert_eq!(pieces, [&b"c"[..], b"de"]);
        let cut = run.cut(FilePosition(101), FilePosition(107));
        assert_eq!(
            (cut.start(), cut.end()),
            (FilePosition(101), FilePosition(107))
        );
        assert_eq!(cut.to_vec(), b"bcdefg");
    }
}
