// SPDX-License-Identifier: LGPL-2.1-or-later

//! A program with generic functions, closures, traits and methods: names as only Rust makes them.

use std::collections::BTreeMap;
use std::fmt::Display;

trait Shape {
    fn area(&self) -> u64;
}

struct Square(u64);
struct Rectangle<T>(T, T);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl<T: Copy + Into<u64>> Shape for Rectangle<T> {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0.into() * self.1.into()
    }
}

#[inline(never)]
fn sum_of<F: Fn(&dyn Shape) -> u64>(shapes: &[Box<dyn Shape>], f: F) -> u64 {
    shapes.iter().map(|s| f(s.as_ref())).sum()
}

#[inline(never)]
fn join<T: Display>(items: &[T]) -> String {
    items.iter().map(|i| i.to_string()).collect::<Vec<_>>().join("+")
}

fn main() {
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();

    for i in 0..300u64 {
        if i % 3 == 0 {
            shapes.push(Box::new(Square(i)));
        } else {
            shapes.push(Box::new(Rectangle(i as u32, 7)));
        }
        *count.entry(join(&[i % 5, i % 7])).or_insert(0) += 1;
    }
    let sum = sum_of(&shapes, |s| s.area() % 1000);
    println!("names: {} shapes, {} keys, sum {}", shapes.len(), count.len(), sum);
}
