using System;

namespace Belt
{
    /// <summary>
    /// Counts parcels that pass the middle of the picture, and says how long they are and how fast the belt is. How strong the
    /// lamp and the amplifier are makes no difference: the empty rows at the upper edge are the measure.
    /// </summary>
    internal sealed class ParcelCounter
    {
        internal const int Width = 320;
        internal const int Height = 240;

        // Rows that no parcel reaches, and rows that every one covers.
        private const int EmptyRows = 20;
        private const int BandFrom = 80;
        private const int BandRows = 20;
        private const int Middle = Width / 2;
        // A parcel is at least twice as bright as the belt.
        private const double Threshold = 1.5;
        private const int ShiftMax = 12;

        private float[] _profile = new float[Width];
        private float[] _before = new float[Width];
        private ulong _numberBefore;
        private bool _covered;
        private ulong _since;
        private long _shifts;
        private long _pictures;
        private bool _any;

        internal int Count { get; private set; }

        /// <summary>Of all parcels together, in pixels.</summary>
        internal long Length { get; private set; }

        /// <summary>How bright the empty belt is.</summary>
        internal double Belt { get; private set; }

        /// <summary>Pixels from one picture to the next.</summary>
        internal double Speed => _pictures == 0 ? 0 : (double)_shifts / _pictures;

        internal void Look(Picture picture, ulong number)
        {
            Belt = MeanOfRows(picture, 0, EmptyRows);
            Array.Clear(_profile, 0, Width);
            for (int y = BandFrom; y < BandFrom + BandRows; y++)
            {
                ReadOnlySpan<byte> row = picture.Row(y);
                for (int x = 0; x < Width; x++)
                {
                    _profile[x] += row[x];
                }
            }
            float limit = (float)(Belt * BandRows * Threshold);
            FollowBelt(limit, number);
            CountAtTheMiddle(_profile[Middle] > limit, number);
            (_profile, _before) = (_before, _profile);
            _numberBefore = number;
            _any = true;
        }

        private void CountAtTheMiddle(bool covered, ulong number)
        {
            if (covered && !_covered)
            {
                _since = number;
            }
            else if (!covered && _covered)
            {
                Count++;
                Length += (long)Math.Round((number - _since) * Speed);
            }
            _covered = covered;
        }

        /// <summary>By how much the picture before has to be shifted to look most like this one.</summary>
        private void FollowBelt(float limit, ulong number)
        {
            bool light = false, dark = false;
            foreach (float column in _profile)
            {
                light |= column > limit;
                dark |= column <= limit;
            }
            // Without an edge every shift is as good.
            if (!_any || !light || !dark || number != _numberBefore + 1)
            {
                return;
            }
            int best = 0;
            float least = float.MaxValue;
            for (int shift = 0; shift <= ShiftMax; shift++)
            {
                float unlike = 0;
                for (int x = ShiftMax; x < Width; x++)
                {
                    unlike += Math.Abs(_profile[x] - _before[x - shift]);
                }
                if (unlike < least)
                {
                    (best, least) = (shift, unlike);
                }
            }
            _shifts += best;
            _pictures++;
        }

        private static double MeanOfRows(Picture picture, int from, int rows)
        {
            long sum = 0;
            foreach (byte pixel in picture.Pixels.Slice(from * Width, rows * Width))
            {
                sum += pixel;
            }
            return (double)sum / (rows * Width);
        }
    }
}
