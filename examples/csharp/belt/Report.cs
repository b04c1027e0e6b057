using System;
using System.Diagnostics;

namespace Belt
{
    /// <summary>The table: a line for every so many pictures of a camera.</summary>
    internal sealed class Report
    {
        internal const string Title =
            "camera   picture  pictures/s   lamp   gain   belt   mean  motion  parcels  left out   age p50     p99";

        private readonly int _camera;
        private readonly long[] _ages;
        private int _count;
        private long _began = Stopwatch.GetTimestamp();
        private Telemetry _last;
        private double _mean;
        private double _motion;
        private double _belt;
        private int _parcels;

        internal Report(int camera, int every)
        {
            _camera = camera;
            _ages = new long[every];
        }

        /// <summary>The most that was allocated for a picture, on average over the pictures of a line.</summary>
        internal long BytesPerPicture { get; set; }

        internal int PicturesSincePrint { get; set; }

        /// <summary>Adds a picture whose result was there so many nanoseconds after its exposure; true: print a line.</summary>
        internal bool Add(in Telemetry known, long age, Statistics statistics, ParcelCounter parcels)
        {
            _ages[_count++] = age;
            _last = known;
            _mean += statistics.Mean;
            _motion += statistics.Motion;
            _belt = parcels.Belt;
            _parcels = parcels.Count;
            return _count == _ages.Length;
        }

        internal void Print()
        {
            long now = Stopwatch.GetTimestamp();
            double seconds = (double)(now - _began) / Stopwatch.Frequency;
            Array.Sort(_ages);
            Console.WriteLine(
                $"{_camera,6} {_last.Number,9} {_count / seconds,11:F1} {_last.Lamp,6:F2} {_last.Gain,6:F2} {_belt,6:F1} " +
                $"{_mean / _count,6:F1} {_motion / _count,7:F2} {_parcels,8} {_last.LeftOut,9} " +
                $"{_ages[_count / 2] / 1000.0,6:F0} µs {_ages[_count * 99 / 100] / 1000.0,5:F0} µs");
            (_began, _count, _mean, _motion) = (now, 0, 0, 0);
        }
    }
}
