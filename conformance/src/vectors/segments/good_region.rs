//! Good regions, and listeners' segments.

use super::super::image::{
    BLOCKS, CAPACITY, DATA_OFFSET, FEATURES_OPTIONAL, FLAGS, Image, LEN, LISTENER, NOTIFY, PAGE, PERSISTENT, REGION,
    VERSION_MINOR, payload,
};
use super::super::model::{Kind, Reader, Role};
use super::{List, both_refused, refused, region};

pub fn add(list: &mut List) {
    for (name, len, about) in [
        ("region-of-1", 1, "one byte in a page"),
        ("region-of-a-page", 4096, "len = capacity"),
        ("region-of-5000", 5000, "a length that is no multiple of anything"),
    ] {
        let mut image = Image::region(len);
        image.put(PAGE, &payload(1, len.min(300))).put(PAGE + len - 1, b"!");
        let reader = region(&image);
        list.good(Kind::Region, name, about, &image, vec![reader]);
    }
    let mut image = Image::region(5000);
    image.put(PAGE + 5000, &[0xEE; 100]);
    let reader = region(&image);
    list.good(
        Kind::Region,
        "region-garbage-after-len",
        "bytes between len and capacity are not the region's",
        &image,
        vec![reader],
    );
    type Change = fn(&mut Image) -> &mut Image;
    let changes: [(&str, &str, Change); 5] = [
        ("region-notify-of-garbage", "notify: somebody waits, and 2^31 − 1 notifications", |image| {
            image.u32(BLOCKS[0] + NOTIFY, u32::MAX)
        }),
        ("region-persistent", "the last one out leaves the name", |image| image.u32(FLAGS, PERSISTENT)),
        ("region-minor-version-and-options", "a later minor version with optional features", |image| {
            image.u16(VERSION_MINOR, 3).u32(FEATURES_OPTIONAL, 0x8000_0001)
        }),
        ("region-garbage-in-unnamed-bytes", "bytes that no table names", |image| {
            image.put(0x60, &[0xC3; 8]).put(0x428, &[0xC3; 8]).put(0x484, &[0xC3; 4]).put(0x800, &[0xC3; 64])
        }),
        ("region-align-of-garbage", "a region has no alignment", |image| image.u32(BLOCKS[0] + 0x18, 24)),
    ];
    for (name, about, change) in changes {
        let mut image = Image::region(100);
        image.put(PAGE, b"region");
        change(&mut image);
        let reader = region(&image);
        list.good(Kind::Region, name, about, &image, vec![reader]);
    }
    let mut image = Image::header(REGION, 0x20_0000 + 0x2000);
    image.u64(BLOCKS[0] + DATA_OFFSET, 0x20_0000).u64(BLOCKS[0] + CAPACITY, 0x2000).u64(BLOCKS[0] + LEN, 0x1800);
    image.put(0x20_0000, b"far away").put(PAGE, &[7; 32]);
    let reader = region(&image);
    list.good(Kind::Region, "region-data-at-2-mib", "data that does not follow the header page", &image, vec![reader]);

    let image = Image::header(LISTENER, PAGE);
    let readers = vec![Reader { open: "ok".into(), ..refused(Role::Listener, "") }];
    list.good(
        Kind::Listener,
        "listener-stale",
        "the segment that a dead listener left: the next one begins anew",
        &image,
        readers,
    );
    let readers = [both_refused("InvalidArgument"), vec![refused(Role::Region, "InvalidArgument")]].concat();
    list.good(
        Kind::Ring,
        "listener-opened-as-another",
        "a listener's segment is no ring and no region",
        &image,
        readers,
    );
}
