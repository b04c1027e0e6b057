//! What the camera sees: parts on a moving belt, through a noisy sensor. The time is written over it, and the last rows
//! hold the picture's number and checksum as black and white cells, which survive the way to a canvas.

pub const WIDTH: usize = 640;
pub const HEIGHT: usize = 480;
/// Planes Y, U and V, the latter two of half the width and height; BT.709, 16 is black and 235 is white.
pub const PICTURE_LEN: usize = WIDTH * HEIGHT * 3 / 2;

const BLACK: u8 = 16;
const WHITE: u8 = 235;
/// Rows of the cells. Each is 1/64 of the width; 32 are the number, 32 the checksum, the highest bit first.
const STRIP: usize = 16;
const CELL: usize = WIDTH / 64;

/// The belt's rows, and after how many pixels its ribs repeat.
const BELT: std::ops::Range<usize> = 64..416;
const RIBS: usize = 32;
/// Pixels a second. Everything moves by pairs of pixels, so that colour, of half the resolution, moves with it.
const SPEED: u64 = 120;
/// From one part to the next, and the square that one fits in.
const PITCH: u64 = 168;
const SPRITE: usize = 128;
/// Y, U and V of steel, brass, red and blue plastic.
const MATERIALS: [[u8; 3]; 4] = [[168, 128, 127], [150, 88, 146], [96, 104, 196], [84, 176, 104]];

/// Everything that is not of one moment, drawn once.
pub struct Scene {
    /// Planes of a picture without parts. The belt's rows are `RIBS` longer than the picture is wide, in `belt`.
    machine: Vec<u8>,
    belt: Vec<u8>,
    /// Each shape in each material.
    parts: Vec<Part>,
    noise: Vec<i8>,
}

/// A part and its shadow, with how much of what is behind they cover (of 255).
struct Part {
    light: Vec<(u8, u8)>,
    colour: [u8; 2],
    /// Of the half resolution.
    cover: Vec<u8>,
}

impl Scene {
    pub fn new() -> Self {
        let shapes: [fn(f32, f32) -> f32; 4] = [washer, nut, plate, gear];
        let parts = shapes.iter().flat_map(|&shape| MATERIALS.map(|material| Part::new(shape, material))).collect();
        // The mean of four uniform values is near enough to a sensor's noise.
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let noise =
            (0..1 << 16).map(|_| (0..4).map(|_| (random.next() % 13) as i32 - 6).sum::<i32>() as i8 / 3).collect();
        Self { machine: machine(), belt: belt(), parts, noise }
    }

    /// Draws the picture of exposure `number`, all of its `PICTURE_LEN` bytes.
    pub fn draw(&self, picture: &mut [u8], number: u64, rate: u32, captured: u64) {
        let way = (number * SPEED / u64::from(rate)) & !1;
        picture.copy_from_slice(&self.machine);
        let (y, uv) = picture.split_at_mut(WIDTH * HEIGHT);
        let (u, v) = uv.split_at_mut(WIDTH * HEIGHT / 4);
        let ribs = RIBS - way as usize % RIBS;
        for (row, texture) in y[BELT.start * WIDTH..].chunks_exact_mut(WIDTH).zip(self.belt.chunks_exact(WIDTH + RIBS))
        {
            row.copy_from_slice(&texture[ribs..ribs + WIDTH]);
        }
        // Part `n` has gone `way` from where it came in, which was `n` pitches ago.
        let first = way.saturating_sub((WIDTH + SPRITE) as u64).div_ceil(PITCH);
        for n in first..=way / PITCH {
            let mut random = Random((n + 1).wrapping_mul(0x2545_F491_4F6C_DD1D));
            let part = &self.parts[random.next() as usize % self.parts.len()];
            let top = BELT.start + 16 + random.next() as usize % (BELT.len() - SPRITE - 32) / 2 * 2;
            part.draw(y, u, v, (way - n * PITCH) as i64 - SPRITE as i64, top);
        }
        self.expose(&mut y[..(HEIGHT - STRIP) * WIDTH], number);
        write(y, &format!("{number:06}  {}", time_of_day(captured)));
        let checksum = checksum(y, u, v);
        let bits = number << 32 | u64::from(checksum);
        for row in y[(HEIGHT - STRIP) * WIDTH..].chunks_exact_mut(WIDTH) {
            for (cell, pixels) in row.chunks_exact_mut(CELL).enumerate() {
                pixels.fill(if bits >> (63 - cell) & 1 == 1 { WHITE } else { BLACK });
            }
        }
    }

    /// The sensor's noise: each row takes its own piece of the table.
    fn expose(&self, y: &mut [u8], number: u64) {
        let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for row in y.chunks_exact_mut(WIDTH) {
            let from = random.next() as usize % (self.noise.len() - WIDTH);
            for (pixel, &noise) in row.iter_mut().zip(&self.noise[from..]) {
                *pixel = pixel.saturating_add_signed(noise);
            }
        }
    }
}

impl Part {
    /// `shape` gives the distance from its edge, negative inside.
    fn new(shape: fn(f32, f32) -> f32, [luma, u, v]: [u8; 3]) -> Self {
        let centre = SPRITE as f32 / 2.0 - 4.0;
        let inside = |x: f32, y: f32, blur: f32| (0.5 - shape(x - centre, y - centre) / blur).clamp(0.0, 1.0);
        let square = |side: usize| (0..side * side).map(move |at| ((at % side) as f32 + 0.5, (at / side) as f32 + 0.5));
        let light = square(SPRITE).map(|(x, y)| {
            let solid = inside(x, y, 1.0);
            let shadow = (1.0 - solid) * inside(x - 7.0, y - 9.0, 7.0) * 0.55;
            // Edges are rounded over 7 pixels, and the lamp is up and to the left.
            let distance = |x: f32, y: f32| shape(x - centre, y - centre);
            let slope = distance(x, y) - distance(x - 0.7, y - 0.9);
            let bevel = (1.0 + distance(x, y) / 7.0).clamp(0.0, 1.0) * -slope * 52.0;
            let cover = solid + shadow;
            let value = (f32::from(luma) + bevel) * solid + f32::from(BLACK) * shadow;
            ((value / cover.max(0.01)).clamp(16.0, 235.0) as u8, (cover * 255.0) as u8)
        });
        let cover = square(SPRITE / 2).map(|(x, y)| (inside(x * 2.0, y * 2.0, 2.0) * 255.0) as u8);
        Self { light: light.collect(), colour: [u, v], cover: cover.collect() }
    }

    /// Blends the part in with its left edge at `left`, as far as that is in the picture; both are even.
    fn draw(&self, y: &mut [u8], u: &mut [u8], v: &mut [u8], left: i64, top: usize) {
        let columns = (-left).max(0) as usize..(WIDTH as i64 - left).clamp(0, SPRITE as i64) as usize;
        let first = (left + columns.start as i64) as usize;
        for (row, light) in self.light.chunks_exact(SPRITE).enumerate() {
            let behind = &mut y[(top + row) * WIDTH + first..];
            for (pixel, &(value, cover)) in behind.iter_mut().zip(&light[columns.clone()]) {
                *pixel = blend(*pixel, value, cover);
            }
        }
        for (plane, colour) in [u, v].into_iter().zip(self.colour) {
            for (row, cover) in self.cover.chunks_exact(SPRITE / 2).enumerate() {
                let behind = &mut plane[(top / 2 + row) * (WIDTH / 2) + first / 2..];
                for (pixel, &cover) in behind.iter_mut().zip(&cover[columns.start / 2..columns.end / 2]) {
                    *pixel = blend(*pixel, colour, cover);
                }
            }
        }
    }
}

fn blend(behind: u8, value: u8, cover: u8) -> u8 {
    ((u32::from(behind) * (255 - u32::from(cover)) + u32::from(value) * u32::from(cover)) / 255) as u8
}

fn washer(x: f32, y: f32) -> f32 {
    let r = x.hypot(y);
    (r - 42.0).max(21.0 - r)
}

fn nut(x: f32, y: f32) -> f32 {
    let (x, y) = (x * 0.966 + y * 0.259, y * 0.966 - x * 0.259);
    let hexagon = (x.abs() * 0.866 + y.abs() * 0.5).max(y.abs()) - 38.0;
    hexagon.max(19.0 - x.hypot(y))
}

/// A rounded rectangle with two holes, turned by 30 degrees.
fn plate(x: f32, y: f32) -> f32 {
    let (x, y) = (x * 0.866 - y * 0.5, x * 0.5 + y * 0.866);
    let (dx, dy) = (x.abs() - 36.0, y.abs() - 16.0);
    let edge = dx.max(0.0).hypot(dy.max(0.0)) + dx.max(dy).min(0.0) - 10.0;
    edge.max(8.0 - (x.abs() - 28.0).hypot(y))
}

fn gear(x: f32, y: f32) -> f32 {
    let r = x.hypot(y);
    let tooth = (4.0 * (y.atan2(x) * 12.0).sin()).clamp(-1.0, 1.0) * 3.5;
    (r - 40.0 - tooth).max(14.0 - r)
}

/// What does not move: the frame of the machine, and the belt's colour.
fn machine() -> Vec<u8> {
    let rails = |row: usize| match BELT.start.abs_diff(row).min((BELT.end - 1).abs_diff(row)) {
        // Rounded rails on both sides of the belt.
        _ if BELT.contains(&row) => BLACK,
        distance @ 0..=14 => 60 + (distance * (15 - distance)) as u8,
        _ => 44,
    };
    let mut picture: Vec<u8> = (0..HEIGHT * WIDTH).map(|at| rails(at / WIDTH)).collect();
    let colour =
        |on: u8| (0..HEIGHT * WIDTH / 4).map(move |at| if BELT.contains(&(at / (WIDTH / 2) * 2)) { on } else { 128 });
    picture.extend(colour(124));
    picture.extend(colour(112));
    picture
}

/// Ribs across the belt, brightest in the middle, where the lamp is.
fn belt() -> Vec<u8> {
    let middle = BELT.len() as f32 / 2.0;
    let light = |row: usize| 92.0 - 34.0 * ((row as f32 - middle) / middle).powi(2);
    let rib = |column: usize| match column % RIBS {
        0 | 1 => -9.0,
        2 | 3 => 6.0,
        _ => 0.0,
    };
    let pixel = |at: usize| (light(at / (WIDTH + RIBS)) + rib(at % (WIDTH + RIBS))) as u8;
    (0..BELT.len() * (WIDTH + RIBS)).map(pixel).collect()
}

/// Over all of the picture but the strip. It finds torn pictures, not forged ones: FNV-1a by words instead of bytes.
fn checksum(y: &[u8], u: &[u8], v: &[u8]) -> u32 {
    let rows = HEIGHT - STRIP;
    let planes = [&y[..rows * WIDTH], &u[..rows * WIDTH / 4], &v[..rows * WIDTH / 4]];
    planes.iter().flat_map(|plane| plane.chunks_exact(4)).fold(0x811C_9DC5, |sum, word| {
        (sum ^ u32::from_le_bytes([word[0], word[1], word[2], word[3]])).wrapping_mul(0x0100_0193)
    })
}

/// Hours, minutes, seconds and milliseconds of the day in UTC.
fn time_of_day(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    let seconds = milliseconds / 1000;
    format!("{:02}:{:02}:{:02}.{:03}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, milliseconds % 1000)
}

/// Digits of 5 by 7 points, a row a byte from the top, the rightmost point in the lowest bit; then a colon and a dot.
const GLYPHS: [[u8; 7]; 12] = [
    [14, 17, 19, 21, 25, 17, 14],
    [4, 12, 4, 4, 4, 4, 14],
    [14, 17, 1, 2, 4, 8, 31],
    [31, 2, 4, 2, 1, 17, 14],
    [2, 6, 10, 18, 31, 2, 2],
    [31, 16, 30, 1, 1, 17, 14],
    [6, 8, 16, 30, 17, 17, 14],
    [31, 1, 2, 4, 8, 8, 8],
    [14, 17, 17, 14, 17, 17, 14],
    [14, 17, 17, 15, 1, 2, 12],
    [0, 4, 4, 0, 4, 4, 0],
    [0, 0, 0, 0, 0, 4, 4],
];

/// Writes in white at the top left, each point of a glyph as two by two pixels.
fn write(y: &mut [u8], text: &str) {
    for (place, letter) in text.bytes().enumerate() {
        let glyph = match letter {
            b'0'..=b'9' => &GLYPHS[usize::from(letter - b'0')],
            b':' => &GLYPHS[10],
            b'.' => &GLYPHS[11],
            _ => continue,
        };
        for (row, column) in (0..14).flat_map(|row| (0..10).map(move |column| (row, column))) {
            if glyph[row / 2] >> (4 - column / 2) & 1 == 1 {
                y[(16 + row) * WIDTH + 16 + place * 12 + column] = WHITE;
            }
        }
    }
}

/// Xorshift; the same exposure always gets the same values.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
