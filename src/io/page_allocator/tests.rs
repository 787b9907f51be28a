use rand::{RngExt, SeedableRng};

use super::*;

const BLOCK_512K: usize = 7;

fn freed(block: *mut u8) -> NonNull<u8> {
    NonNull::new(block).unwrap()
}

#[test]
fn a_freed_block_serves_the_next_of_its_size() {
    let mut regions = Regions::EMPTY;
    let (first, second) = (regions.take(BLOCK_512K), regions.take(BLOCK_512K));
    assert_eq!((second as usize).abs_diff(first as usize) % (512 << 10), 0);
    assert_eq!(first as usize % PAGE_BYTES, 0);
    regions.give_back(freed(second), BLOCK_512K);
    assert_eq!(regions.take(BLOCK_512K), second);
}

#[test]
fn freed_small_blocks_become_large_ones_again() {
    let mut regions = Regions::EMPTY;
    // More than the first huge page, which the map shares.
    let small: Vec<_> = (0..4000).map(|_| regions.take(0)).collect();
    let end = regions.next.start;
    small
        .iter()
        .for_each(|block| regions.give_back(freed(*block), 0));
    let large: Vec<_> = (0..5).map(|_| regions.take(ORDER_MAX)).collect();
    assert!(
        large.iter().all(|block| (*block as usize) < end),
        "no new memory is touched"
    );
}

#[test]
fn blocks_handed_out_at_one_time_do_not_overlap() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut regions = Regions::EMPTY;
    let mut held: Vec<(usize, usize)> = Vec::new();
    for _ in 0..20_000 {
        if held.len() < 200 || random.random_bool(0.5) {
            let order = random.random_range(0..ORDER_COUNT);
            let block = regions.take(order) as usize;
            let end = block + (BLOCK_BYTES_MIN << order);
            assert!(block.is_multiple_of(BLOCK_BYTES_MIN << order));
            for (other, order) in &held {
                assert!(end <= *other || *other + (BLOCK_BYTES_MIN << order) <= block);
            }
            held.push((block, order));
        } else {
            let (block, order) = held.swap_remove(random.random_range(0..held.len()));
            regions.give_back(freed(block as *mut u8), order);
        }
    }
}

#[test]
fn what_comes_next_is_touched_once_and_as_far_ahead_as_was_used() {
    let mut regions = Regions::EMPTY;
    regions.take(ORDER_MAX);
    let mut touched = Vec::new();
    while let Some(Untouched::Block(block)) = regions.next_untouched() {
        touched.push(block);
    }
    assert_eq!(touched.len() * BLOCK_BYTES_MAX, TOUCHED_AHEAD_BYTES_MIN);
    assert_eq!(touched[0], regions.next.start);
    // Each further block that is handed out lets one more be touched.
    assert_eq!(regions.take(ORDER_MAX) as usize, touched[0]);
    assert!(matches!(
        regions.next_untouched(),
        Some(Untouched::Block(block)) if block == touched[touched.len() - 1] + BLOCK_BYTES_MAX
    ));
    assert!(regions.next_untouched().is_none());
}

#[test]
fn no_more_is_touched_ahead_than_the_limit_says() {
    let mut regions = Regions::EMPTY;
    regions.ahead_bytes_max = 4 * BLOCK_BYTES_MAX;
    regions.take(ORDER_MAX);
    let touched = std::iter::from_fn(|| regions.next_untouched()).count();
    assert_eq!(touched, 4);
}

#[test]
fn a_region_is_asked_for_before_the_last_one_is_used_up() {
    let mut regions = Regions::EMPTY;
    regions.take(ORDER_MAX);
    while regions.next.bytes() >= TOUCHED_AHEAD_BYTES_MIN {
        regions.take(ORDER_MAX);
    }
    let asked = std::iter::from_fn(|| regions.next_untouched())
        .find(|next| matches!(next, Untouched::Region));
    assert!(asked.is_some());
    let region = map_region().expect("memory");
    regions.spare = regions.open_region(region);
    assert!(matches!(
        regions.next_untouched(),
        Some(Untouched::Block(block)) if block == region + BLOCK_BYTES_MAX
    ));
    regions.end_touch();
    while !regions.next.is_empty() {
        regions.take(ORDER_MAX);
    }
    assert_eq!(regions.take(ORDER_MAX) as usize, region + BLOCK_BYTES_MAX);
}

#[test]
fn a_block_that_is_being_touched_is_passed_over_and_free_afterwards() {
    let mut regions = Regions::EMPTY;
    regions.take(ORDER_MAX);
    let Some(Untouched::Block(touching)) = regions.next_untouched() else {
        panic!("the next block is not resident");
    };
    let behind = |blocks: usize| touching + blocks * BLOCK_BYTES_MAX;
    assert_eq!(regions.take(ORDER_MAX) as usize, behind(1));
    regions.end_touch();
    assert_eq!(regions.take(ORDER_MAX) as usize, touching);
    assert_eq!(regions.take(ORDER_MAX) as usize, behind(2));
}

#[test]
fn only_page_aligned_powers_of_two_are_blocks() {
    let order = |size, align| order_of(&Layout::from_size_align(size, align).unwrap());
    assert_eq!(order(4 << 10, 4096), Some(0));
    assert_eq!(order(2 << 20, 4096), Some(ORDER_MAX));
    for other in [
        (16 << 10, 8),
        (2 << 10, 4096),
        (24 << 10, 4096),
        (4 << 20, 4096),
    ] {
        assert_eq!(order(other.0, other.1), None, "{other:?}");
    }
}

#[test]
fn blocks_of_every_size_are_usable_and_apart() {
    let layouts: Vec<_> = (0..ORDER_COUNT)
        .map(|order| Layout::from_size_align(BLOCK_BYTES_MIN << order, PAGE_BYTES).unwrap())
        .collect();
    // SAFETY: each block is written within its size and freed once with its own layout.
    unsafe {
        let blocks: Vec<_> = layouts
            .iter()
            .map(|layout| std::alloc::alloc(*layout))
            .collect();
        for (n, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
            block.write_bytes(n as u8, layout.size());
        }
        for (n, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
            assert!(
                std::slice::from_raw_parts(*block, layout.size())
                    .iter()
                    .all(|byte| *byte == n as u8)
            );
            std::alloc::dealloc(*block, *layout);
        }
    }
}
