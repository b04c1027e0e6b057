using System;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;
using Ramway;

namespace Belt
{
    /// <summary>What a camera says at its end: the twin of `report` in camera.cpp.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal readonly struct CameraReport
    {
        internal readonly ulong Pictures;
        internal readonly ulong LeftOut;
        internal readonly ulong Parcels;
        internal readonly ulong Length;
    }

    /// <summary>
    /// One camera: looks at each picture where it lies in the shared memory, counts parcels, and tells the camera how much to
    /// amplify.
    /// </summary>
    internal sealed class Watcher
    {
        private const uint GainType = 1;
        private const uint ReportType = 2;

        /// <summary>How bright the empty belt is to be.</summary>
        private const double Wanted = 60;

        private readonly int _number;
        private readonly Bus _bus;
        private readonly int _slow;
        private readonly CancellationToken _stop;
        private readonly Statistics _statistics = new Statistics();
        private readonly ParcelCounter _parcels = new ParcelCounter();
        private readonly Report _report;

        private double _gain = 1;
        private long _seen;
        private long _allocated;
        // Nobody listens any more.
        private bool _deaf;

        internal Watcher(int number, Bus bus, int every, int slow, CancellationToken stop)
        {
            _number = number;
            _bus = bus;
            _slow = slow;
            _stop = stop;
            _report = new Report(number, every);
        }

        internal void Run()
        {
            using (_bus)
            {
                try
                {
                    while (Next())
                    {
                    }
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead)
                {
                    Console.WriteLine($"belt: camera {_number} (process {_bus.PeerPid}) died; seen of it: {_seen} pictures, " +
                        $"{_parcels.Count} parcels");
                }
                catch (RamwayException e)
                {
                    Console.WriteLine($"belt: camera {_number}: {e.Message}");
                }
                catch (OperationCanceledException)
                {
                    Console.WriteLine($"belt: camera {_number}: stopped after {_seen} pictures, {_parcels.Count} parcels");
                }
            }
        }

        /// <summary>Takes one message; false: that was all.</summary>
        private bool Next()
        {
            // Not written with `using`: a picture goes back before it is slept on.
            Message message = _bus.Receiver.Recv(null, _stop);
            try
            {
                if (message.TypeId == ReportType)
                {
                    Conclude(MemoryMarshal.Read<CameraReport>(message.Data));
                    return false;
                }
                Look(new Picture(message.AsTensor()));
            }
            finally
            {
                message.Dispose();
            }
            if (_slow > 0)
            {
                Thread.Sleep(_slow);
            }
            return true;
        }

        private void Look(Picture picture)
        {
            ref readonly Telemetry known = ref picture.Telemetry;
            _statistics.Look(picture);
            _parcels.Look(picture, known.Number);
            _seen++;
            // Half of what is missing, in proportion: what is told takes effect two pictures later, and must not swing.
            _gain = Math.Clamp(known.Gain * Math.Sqrt(Wanted / Math.Max(_parcels.Belt, 1)), 0.1, 10);
            if (!_deaf)
            {
                Tell((float)_gain, known.Number);
            }
            // C++'s steady_clock and Stopwatch are the same clock of Linux.
            long age = Stopwatch.GetTimestamp() - (long)known.Exposed;
            if (_report.Add(known, age, _statistics, _parcels))
            {
                // What a line of the table costs is not what a picture costs.
                _report.Print();
                _allocated = GC.GetAllocatedBytesForCurrentThread();
                _report.PicturesSincePrint = 0;
            }
            else if (_allocated != 0 && !_deaf)
            {
                long bytes = GC.GetAllocatedBytesForCurrentThread() - _allocated;
                _report.BytesPerPicture = Math.Max(_report.BytesPerPicture, bytes / ++_report.PicturesSincePrint);
            }
        }

        private void Tell(float gain, ulong number)
        {
            try
            {
                // Only the latest counts: where there is no room, the next one will do.
                _bus.Sender.TrySend(GainType, number, MemoryMarshal.AsBytes(MemoryMarshal.CreateReadOnlySpan(ref gain, 1)));
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Closed || e.Kind == ErrorKind.PeerDead)
            {
                // It takes no more pictures. Those that it has taken are still to be looked at; an exception is not what one of
                // them costs.
                _deaf = true;
            }
        }

        private void Conclude(in CameraReport told)
        {
            Console.WriteLine($"belt: camera {_number} ended: {told.Pictures} pictures drawn, {_seen} seen, {told.LeftOut} left out; " +
                $"{_parcels.Count} parcels counted, {told.Parcels} passed");
            Console.WriteLine($"result camera={_number} drawn={told.Pictures} seen={_seen} left_out={told.LeftOut} " +
                $"counted={_parcels.Count} passed={told.Parcels} length={_parcels.Length} passed_length={told.Length} " +
                $"speed={_parcels.Speed:F2} belt={_parcels.Belt:F1} gain={_gain:F2} bytes={_report.BytesPerPicture}");
        }
    }
}
