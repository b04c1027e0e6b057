//! What a bus hands on to its two ends.

use crate::args::Timeout;
use crate::awaitable::Wait;
use crate::bus::Bus;
use crate::message::Message;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::slot::Slot;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

#[pymethods]
impl Bus {
    /// `Sender.send`.
    #[pyo3(signature = (data, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, data, type_id=0, tag=0, *, timeout=None)")]
    fn send<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<()> {
        self.tx(py)?.send(data, type_id, tag, timeout)
    }

    /// `Sender.try_send`.
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    fn try_send<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        self.tx(py)?.try_send(data, type_id, tag)
    }

    /// `Sender.send_async`.
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    fn send_async<'py>(
        &self,
        py: Python<'py>,
        data: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        Sender::send_async(self.tx_bound(py)?, data, type_id, tag)
    }

    /// `Sender.send_vectored`.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, pieces, type_id=0, tag=0, *, timeout=None)")]
    fn send_vectored<'py>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<()> {
        self.tx(py)?.send_vectored(pieces, type_id, tag, timeout)
    }

    /// `Sender.try_send_vectored`.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0))]
    fn try_send_vectored<'py>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        self.tx(py)?.try_send_vectored(pieces, type_id, tag)
    }

    /// `Sender.send_vectored_async`.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0))]
    fn send_vectored_async<'py>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        Sender::send_vectored_async(self.tx_bound(py)?, pieces, type_id, tag)
    }

    /// `Sender.send_batch`.
    #[pyo3(signature = (messages, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, messages, type_id=0, tag=0, *, timeout=None)")]
    fn send_batch<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<usize> {
        self.tx(py)?.send_batch(messages, type_id, tag, timeout)
    }

    /// `Sender.send_batch_async`.
    #[pyo3(signature = (messages, type_id = 0, tag = 0))]
    fn send_batch_async<'py>(
        &self,
        py: Python<'py>,
        messages: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        Sender::send_batch_async(self.tx_bound(py)?, messages, type_id, tag)
    }

    /// `Sender.send_array`.
    #[pyo3(signature = (array, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, array, type_id=0, tag=0, *, timeout=None)")]
    fn send_array<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<usize> {
        Sender::send_array(self.tx_bound(py)?, array, type_id, tag, timeout)
    }

    /// `Sender.send_array_async`.
    #[pyo3(signature = (array, type_id = 0, tag = 0))]
    fn send_array_async<'py>(
        &self,
        py: Python<'py>,
        array: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        Sender::send_array_async(self.tx_bound(py)?, array, type_id, tag)
    }

    /// `Sender.send_tensor`.
    #[pyo3(signature = (array, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, array, tag=0, *, timeout=None)")]
    fn send_tensor<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<()> {
        Sender::send_tensor(self.tx_bound(py)?, array, tag, timeout)
    }

    /// `Sender.try_send_tensor`.
    #[pyo3(signature = (array, tag = 0))]
    fn try_send_tensor<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        Sender::try_send_tensor(self.tx_bound(py)?, array, tag)
    }

    /// `Sender.send_tensor_async`.
    #[pyo3(signature = (array, tag = 0))]
    fn send_tensor_async<'py>(
        &self,
        py: Python<'py>,
        array: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        Sender::send_tensor_async(self.tx_bound(py)?, array, tag)
    }

    /// `Sender.reserve`.
    #[pyo3(signature = (n, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, n, type_id=0, tag=0, *, timeout=None)")]
    fn reserve<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<Slot> {
        Sender::reserve(self.tx_bound(py)?, n, type_id, tag, timeout)
    }

    /// `Sender.try_reserve`.
    #[pyo3(signature = (n, type_id = 0, tag = 0))]
    fn try_reserve<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Slot> {
        Sender::try_reserve(self.tx_bound(py)?, n, type_id, tag)
    }

    /// `Sender.reserve_async`.
    #[pyo3(signature = (n, type_id = 0, tag = 0))]
    fn reserve_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        Sender::reserve_async(self.tx_bound(py)?, n, type_id, tag)
    }

    /// `Sender.reserve_tensor`.
    #[pyo3(signature = (shape, dtype, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, shape, dtype, tag=0, *, timeout=None)")]
    fn reserve_tensor<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<Bound<'py, PyAny>> {
        Sender::reserve_tensor(self.tx_bound(py)?, shape, dtype, tag, timeout)
    }

    /// `Sender.try_reserve_tensor`.
    #[pyo3(signature = (shape, dtype, tag = 0))]
    fn try_reserve_tensor<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        Sender::try_reserve_tensor(self.tx_bound(py)?, shape, dtype, tag)
    }

    /// `Sender.reserve_tensor_async`.
    #[pyo3(signature = (shape, dtype, tag = 0))]
    fn reserve_tensor_async<'py>(
        &self,
        py: Python<'py>,
        shape: Bound<'py, PyAny>,
        dtype: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        Sender::reserve_tensor_async(self.tx_bound(py)?, shape, dtype, tag)
    }

    /// `Sender.flush`.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<()> {
        self.tx(py)?.flush(py)
    }

    /// `Receiver.recv`.
    #[pyo3(signature = (timeout = Timeout::FOREVER),
           text_signature = "($self, timeout=None)")]
    fn recv<'py>(&self, py: Python<'py>, timeout: Timeout) -> PyResult<Py<Message>> {
        Receiver::recv(self.rx(py)?, timeout)
    }

    /// `Receiver.try_recv`.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Py<Message>>> {
        Receiver::try_recv(self.rx(py)?)
    }

    /// `Receiver.recv_async`.
    fn recv_async<'py>(&self, py: Python<'py>) -> PyResult<Wait> {
        Ok(Receiver::recv_async(self.rx(py)?))
    }

    /// `Receiver.recv_batch`.
    #[pyo3(signature = (max = 1024, timeout = Timeout::FOREVER),
           text_signature = "($self, max=1024, timeout=None)")]
    fn recv_batch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
        timeout: Timeout,
    ) -> PyResult<Bound<'py, PyList>> {
        Receiver::recv_batch(self.rx(py)?, max, timeout)
    }

    /// `Receiver.try_recv_batch`.
    #[pyo3(signature = (max = 1024))]
    fn try_recv_batch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        Receiver::try_recv_batch(self.rx(py)?, max)
    }

    /// `Receiver.recv_batch_async`.
    #[pyo3(signature = (max = 1024))]
    fn recv_batch_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Wait> {
        Receiver::recv_batch_async(self.rx(py)?, max)
    }

    /// `Receiver.recv_bytes`.
    #[pyo3(signature = (timeout = Timeout::FOREVER),
           text_signature = "($self, timeout=None)")]
    fn recv_bytes<'py>(&self, py: Python<'py>, timeout: Timeout) -> PyResult<Bound<'py, PyBytes>> {
        self.rx(py)?.get().recv_bytes(py, timeout)
    }

    /// `Receiver.recv_bytes_async`.
    fn recv_bytes_async<'py>(&self, py: Python<'py>) -> PyResult<Wait> {
        Receiver::recv_bytes_async(self.rx(py)?)
    }

    /// `Receiver.recv_into`.
    #[pyo3(signature = (buffer, timeout = Timeout::FOREVER),
           text_signature = "($self, buffer, timeout=None)")]
    fn recv_into<'py>(&self, py: Python<'py>, buffer: &Bound<'py, PyAny>, timeout: Timeout) -> PyResult<usize> {
        self.rx(py)?.get().recv_into(buffer, timeout)
    }

    /// `Receiver.try_recv_into`.
    #[pyo3(signature = (buffer))]
    fn try_recv_into<'py>(&self, py: Python<'py>, buffer: &Bound<'py, PyAny>) -> PyResult<Option<usize>> {
        self.rx(py)?.get().try_recv_into(buffer)
    }

    /// `Receiver.recv_into_async`.
    #[pyo3(signature = (buffer))]
    fn recv_into_async<'py>(&self, py: Python<'py>, buffer: Bound<'py, PyAny>) -> PyResult<Wait> {
        Receiver::recv_into_async(self.rx(py)?, buffer)
    }

    /// `Receiver.recv_array`.
    #[pyo3(signature = (dtype, max = 1024, timeout = Timeout::FOREVER),
           text_signature = "($self, dtype, max=1024, timeout=None)")]
    fn recv_array<'py>(
        &self,
        py: Python<'py>,
        dtype: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
        timeout: Timeout,
    ) -> PyResult<Bound<'py, PyAny>> {
        Receiver::recv_array(self.rx(py)?, dtype, max, timeout)
    }

    /// `Receiver.recv_array_async`.
    #[pyo3(signature = (dtype, max = 1024))]
    fn recv_array_async<'py>(
        &self,
        py: Python<'py>,
        dtype: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Wait> {
        Receiver::recv_array_async(self.rx(py)?, dtype, max)
    }
}
