//! A ring between the sound card's callback and the pipeline that never makes
//! the callback wait.
//!
//! The callback neither allocates, locks, logs nor makes a system call. Sound
//! that finds no room is counted, and the reader puts silence of the same length
//! where it is missing: a gap on the timeline, never a silent splice. Gaps that
//! find no room in their own small ring are joined into the next one.

use rtrb::{Consumer, Producer, RingBuffer};

/// Gaps that can wait to be read at a time.
const GAPS: usize = 64;

/// Samples that were lost after so many had been written.
#[derive(Clone, Copy)]
struct Gap {
    after: u64,
    lost: u64,
}

/// The callback's end.
pub(super) struct Writer {
    samples: Producer<f32>,
    gaps: Producer<Gap>,
    written: u64,
    pending: u64,
}

/// The pipeline's end.
pub(super) struct Reader {
    samples: Consumer<f32>,
    gaps: Consumer<Gap>,
    read: u64,
    lost: u64,
}

/// A ring for so many samples.
pub(super) fn ring(capacity: usize) -> (Writer, Reader) {
    let (samples_in, samples_out) = RingBuffer::new(capacity);
    let (gaps_in, gaps_out) = RingBuffer::new(GAPS);
    (
        Writer {
            samples: samples_in,
            gaps: gaps_in,
            written: 0,
            pending: 0,
        },
        Reader {
            samples: samples_out,
            gaps: gaps_out,
            read: 0,
            lost: 0,
        },
    )
}

impl Writer {
    /// Writes all samples, or counts all of them as lost.
    pub(super) fn write(&mut self, samples: impl ExactSizeIterator<Item = f32>) {
        let count = samples.len();
        self.report_gap();
        let room = self.pending == 0;
        match self.samples.write_chunk_uninit(count) {
            Ok(chunk) if room => self.written += chunk.fill_from_iter(samples) as u64,
            _ => {
                self.pending += count as u64;
                self.report_gap();
            }
        }
    }

    fn report_gap(&mut self) {
        let gap = Gap {
            after: self.written,
            lost: self.pending,
        };
        if gap.lost > 0 && self.gaps.push(gap).is_ok() {
            self.pending = 0;
        }
    }
}

impl Reader {
    /// Appends what has been written since, with silence for what was lost.
    pub(super) fn read(&mut self, out: &mut Vec<f32>) {
        // Samples are looked at first: a gap that is seen afterwards lies behind
        // them or between them, never before samples already handed over.
        let mut available = self.samples.slots();
        while let Ok(&gap) = self.gaps.peek() {
            let before = (gap.after - self.read) as usize;
            if before > available {
                break;
            }
            self.take(before, out);
            available -= before;
            out.resize(out.len() + gap.lost as usize, 0.0);
            self.lost += gap.lost;
            let _ = self.gaps.pop();
        }
        self.take(available, out);
    }

    /// Samples lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    fn take(&mut self, count: usize, out: &mut Vec<f32>) {
        if let Ok(chunk) = self.samples.read_chunk(count) {
            out.extend(chunk);
            self.read += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(from: u32, count: u32) -> impl ExactSizeIterator<Item = f32> {
        (0..count).map(move |i| (from + i) as f32)
    }

    #[test]
    fn what_is_written_is_read() {
        let (mut writer, mut reader) = ring(8);
        writer.write(counting(1, 5));
        let mut out = Vec::new();
        reader.read(&mut out);
        writer.write(counting(6, 5));
        reader.read(&mut out);
        assert_eq!(out, (1..=10).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(reader.lost(), 0);
    }

    #[test]
    fn lost_samples_become_silence_at_their_place() {
        let (mut writer, mut reader) = ring(4);
        writer.write(counting(1, 3));
        writer.write(counting(4, 3)); // no room
        let mut out = Vec::new();
        reader.read(&mut out);
        writer.write(counting(7, 2));
        reader.read(&mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 7.0, 8.0]);
        assert_eq!(reader.lost(), 3);
    }

    #[test]
    fn timeline_is_kept_when_more_gaps_occur_than_can_wait() {
        let (mut writer, mut reader) = ring(2);
        let mut written = 0;
        for _ in 0..3 * GAPS as u32 {
            writer.write(counting(0, 2));
            writer.write(counting(0, 1));
            written += 3;
        }
        let mut out = Vec::new();
        for _ in 0..3 {
            reader.read(&mut out);
            writer.write(counting(0, 1));
            written += 1;
        }
        reader.read(&mut out);
        writer.report_gap();
        reader.read(&mut out);
        assert_eq!(out.len(), written);
    }
}
