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

    /// Reads the run from its start on.
    pub fn cursor(&self) -> RunCursor<'_> {
        RunCursor {
            run: self,
            piece: 0,
            piece_start: self.start,
        }
    }

    pub fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// Adds the bytes of another run, wherever in the log they lie.
    pub fn append(&mut self, other: Self) {
        self.end = self.end.plus(other.len() as u64);
        self.pieces.extend(other.pieces);
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

/// A place in a run that only moves forward, so that all its reads together look at each piece once.
pub struct RunCursor<'a> {
    run: &'a ByteRun,
    piece: usize,
    piece_start: FilePosition,
}

impl<'a> RunCursor<'a> {
    /// Moves to the piece that holds `position`, which no call before may have passed.
    fn seek(&mut self, position: FilePosition) {
        assert!(
            self.piece_start <= position,
            "{position} lies before {} in a run",
            self.piece_start
        );
        while let Some(piece) = self.run.pieces.get(self.piece) {
            let end = self.piece_start.plus(piece.len() as u64);
            if position < end {
                break;
            }
            (self.piece, self.piece_start) = (self.piece + 1, end);
        }
    }

    /// Copies `out.len()` bytes from `position` on; false if the run does not hold them all.
    pub fn copy_at(&mut self, position: FilePosition, out: &mut [u8]) -> bool {
        let end = position.plus(out.len() as u64);
        if position < self.run.start || end > self.run.end {
            return false;
        }
        let mut filled = 0;
        for part in self.pieces(position, end) {
            out[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        true
    }

    /// The bytes from `start` to `end`, piece by piece; both must lie in the run.
    pub fn pieces(
        &mut self,
        start: FilePosition,
        end: FilePosition,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        assert!(
            self.run.start <= start && start <= end && end <= self.run.end,
            "{start}..{end} is not in the run"
        );
        self.seek(start);
        let mut skip = (start.0 - self.piece_start.0) as usize;
        let mut left = (end.0 - start.0) as usize;
        let pieces = self.run.pieces[self.piece..].iter();
        pieces.map_while(move |piece| {
            let part = &piece[skip..][..left.min(piece.len() - skip)];
            skip = 0;
            left -= part.len();
            (!part.is_empty()).then_some(part)
        })
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
        let mut cursor = run.cursor();
        assert!(!cursor.copy_at(FilePosition(99), &mut out));
        assert!(cursor.copy_at(FilePosition(102), &mut out));
        assert_eq!(&out, b"cdef");
        assert!(!cursor.copy_at(FilePosition(105), &mut out));
        let pieces: Vec<_> = cursor
            .pieces(FilePosition(102), FilePosition(105))
            .collect();
        assert_eq!(pieces, [&b"c"[..], b"de"]);
        assert!(cursor.copy_at(FilePosition(104), &mut out));
        assert_eq!(&out, b"efgh");
        assert_eq!(
            cursor.pieces(FilePosition(108), FilePosition(108)).count(),
            0
        );
        let cut = run.cut(FilePosition(101), FilePosition(107));
        assert_eq!(
            (cut.start(), cut.end()),
            (FilePosition(101), FilePosition(107))
        );
        assert_eq!(cut.to_vec(), b"bcdefg");
    }

    #[test]
    #[should_panic(expected = "lies before")]
    fn a_cursor_passes_each_piece_once() {
        let mut run = ByteRun::starting_at(FilePosition(0));
        run.push(Bytes::from_static(b"abc"));
        run.push(Bytes::from_static(b"defg"));
        let mut cursor = run.cursor();
        assert!(cursor.copy_at(FilePosition(4), &mut [0; 2]));
        cursor.copy_at(FilePosition(2), &mut [0; 2]);
    }
}
