using Ramway.Sys;

namespace Ramway.Tests
{
    internal static class LayoutTests
    {
        [Test]
        private static void FrameSizesAndPositions()
        {
            Check.Equal(16ul, Layout.FrameSize(0, 16), "an empty frame");
            Check.Equal(32ul, Layout.FrameSize(5, 16), "a frame of 5 bytes");
            Check.Equal(4096ul, Layout.FrameSize(4080, 4096), "a frame of 4080 bytes, aligned to 4096");
            Check.Equal(0ul, Layout.FirstPosition(16), "the first position at 16");
            Check.Equal(4080ul, Layout.FirstPosition(4096), "the first position at 4096");
            Check.Equal(4080u, Layout.MaxMessageLength(4096), "the longest message in 4096");
            Check.Equal(Facts.MessageMax, Layout.MaxMessageLength(1ul << 40), "the longest message in 1 TiB");
            Check.That(Layout.PositionsAgree(16, 0, 4096, 16), "16 and 0");
            Check.That(Layout.PositionsAgree(0, ulong.MaxValue - 15, 4096, 16), "positions that wrap");
            Check.That(!Layout.PositionsAgree(0, 16, 4096, 16), "a head ahead of the tail");
            Check.That(!Layout.PositionsAgree(8, 0, 4096, 16), "a tail between frames");
            Check.That(!Layout.PositionsAgree(8192, 0, 4096, 16), "more than the capacity");
        }

        [Test]
        private static void TypesAreAsLongAsInTheFormat()
        {
            unsafe
            {
                Check.Equal(0x280, sizeof(RingBlock), "a ring's block");
                Check.Equal(0x100, sizeof(RegionBlock), "a region's block");
                Check.Equal(128, sizeof(RoleLine), "a role's line");
                Check.Equal(16, sizeof(TagRecord), "a last-tag record");
                Check.Equal(0x280, sizeof(TopicBlock), "a topic's block");
                Check.Equal(0x1000, sizeof(SubscribersArea), "the beginning of a subscribers' area");
                Check.Equal(128, sizeof(SubscriberSlot), "a subscriber's slot");
                Check.Equal(64, sizeof(SlotLabel), "its label");
                // A ring's Tail and a topic's are polled by the same code, through pointers.
                var block = new TopicBlock();
                Check.Equal(Facts.OffTopicStarts, (int)((byte*)&block.Starts[0] - (byte*)&block), "where the notes are");
                var slot = new SubscriberSlot();
                Check.Equal(Facts.OffSlotLabel, (int)((byte*)&slot.Label[0] - (byte*)&slot), "where the label is");
            }
            Check.That(Memory.PageSize >= 4096, "the page");
        }
    }
}
