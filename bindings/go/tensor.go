package ramway

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"
)

// Tensors as messages: docs/ABI.md, section 18.

const (
	// TensorTypeID is the type id of a message that is a tensor.
	TensorTypeID = typeIDTensor
	// TensorDims is how many dimensions a tensor has at most.
	TensorDims = ndimMax
)

// Dtype is what a tensor's elements are: DLPack's type code in the upper byte, the bits of one element in the lower.
type Dtype uint16

// Dtypes is every type that a tensor's elements can have.
func Dtypes() []Dtype {
	all := make([]Dtype, len(dtypes))
	for i, d := range dtypes {
		all[i] = d.dtype
	}
	return all
}

// String is the type's name: "float32", "bfloat16".
func (d Dtype) String() string {
	if name := d.name(); name != "" {
		return name
	}
	return fmt.Sprintf("Dtype(%d, %d bits)", d>>8, d&0xFF)
}

// Size is how many bytes an element takes.
func (d Dtype) Size() int { return int(d&0xFF) / 8 }

// name is empty for a type that there is not.
func (d Dtype) name() string {
	for _, known := range dtypes {
		if known.dtype == d {
			return known.name
		}
	}
	return ""
}

func (d Dtype) known() bool { return d.name() != "" }

// Element is a Go type whose bytes are those of an element. Not bool: a peer can send a byte that is neither 0 nor 1.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

// dtypeOfKind has the types of [Element].
var dtypeOfKind = [...]Dtype{
	reflect.Int8:       DtypeInt8,
	reflect.Int16:      DtypeInt16,
	reflect.Int32:      DtypeInt32,
	reflect.Int64:      DtypeInt64,
	reflect.Uint8:      DtypeUint8,
	reflect.Uint16:     DtypeUint16,
	reflect.Uint32:     DtypeUint32,
	reflect.Uint64:     DtypeUint64,
	reflect.Float32:    DtypeFloat32,
	reflect.Float64:    DtypeFloat64,
	reflect.Complex64:  DtypeComplex64,
	reflect.Complex128: DtypeComplex128,
}

// DtypeOf is the type of a tensor of these.
func DtypeOf[T Element]() Dtype { return dtypeOfKind[reflect.TypeFor[T]().Kind()] }

// Tensor is a tensor frame, checked. Type and shape are copies.
type Tensor struct {
	Dtype Dtype
	// Shape has the outermost dimension first; it is empty for a tensor of one element without any.
	Shape []uint64
	// Data is the elements, in C order (the last dimension varies fastest), as they lie in the payload: good as long as
	// that.
	Data []byte
}

// ParseTensor reads a payload as a tensor. What is not a tensor frame is ErrInvalidArgument, with what is wrong. Whether the elements lie
// on a multiple of 64 bytes is not checked: in a copy of the payload they need not.
func ParseTensor(payload []byte) (Tensor, error) {
	none := func(format string, args ...any) (Tensor, error) {
		return Tensor{}, failf(InvalidArgument, "not a tensor frame: "+format, args...)
	}
	if len(payload) < 8 {
		return none("%d bytes, and its header alone has 8", len(payload))
	}
	// One load: what is checked is what is used, also where a peer rewrites what it sent.
	fixed := binary.LittleEndian.Uint64(payload)
	dtype := Dtype(fixed&0xFF<<8 | fixed>>8&0xFF)
	ndim, zero, offset := int(fixed>>16&0xFF), fixed>>24&0xFF, int(fixed>>32)
	start := 8 + 8*ndim
	switch {
	case !dtype.known():
		return none("there is no element type with the code %d and %d bits", dtype>>8, dtype&0xFF)
	case ndim > TensorDims:
		return none("%d dimensions, and %d are the most", ndim, TensorDims)
	case zero != 0:
		return none("byte 3 is %d, not 0", zero)
	case offset < start || offset >= start+tensorAlign || offset > len(payload):
		return none("the data of %d dimensions begins at %d to %d, not at %d, in a payload of %d bytes", ndim, start,
			start+tensorAlign-1, offset, len(payload))
	}
	shape := make([]uint64, ndim)
	for i := range shape {
		shape[i] = binary.LittleEndian.Uint64(payload[8+8*i:])
	}
	if slices.ContainsFunc(payload[start:offset], func(b byte) bool { return b != 0 }) {
		return none("the bytes between shape and data are not all 0")
	}
	data := payload[offset:len(payload):len(payload)]
	if n, ok := tensorBytes(dtype, shape); !ok || n != len(data) {
		return none("%d bytes are not %v of the shape %v", len(data), dtype, shape)
	}
	return Tensor{Dtype: dtype, Shape: shape, Data: data}, nil
}

// Elements is the elements of a [Tensor] or [TensorSlot] as a Go slice, in place. ErrInvalidArgument if dtype, which is
// what they are, is not that of T, or if data lies where no T can.
//
//	pixels, err := ramway.Elements[uint8](tensor.Data, tensor.Dtype)
func Elements[T Element](data []byte, dtype Dtype) ([]T, error) {
	if want := DtypeOf[T](); dtype != want {
		return nil, failf(InvalidArgument, "a tensor of %v read or written as %v", dtype, want)
	}
	var zero T
	at := unsafe.Pointer(unsafe.SliceData(data))
	if len(data) == 0 {
		return nil, nil
	}
	if uintptr(at)%unsafe.Alignof(zero) != 0 {
		return nil, failf(InvalidArgument, "a tensor's elements are not aligned for %v", dtype)
	}
	return unsafe.Slice((*T)(at), len(data)/int(unsafe.Sizeof(zero))), nil
}

// tensorBytes is how many bytes the elements take; false if the product of the dimensions that are not 0 and of the
// element's size is 2^63 or more: no stride then overflows, in whichever order a language multiplies.
func tensorBytes(dtype Dtype, shape []uint64) (int, bool) {
	size := uint64(dtype.Size())
	for _, dim := range shape {
		high, low := bits.Mul64(size, max(dim, 1))
		if high != 0 || low >= 1<<63 {
			return 0, false
		}
		size = low
	}
	if slices.Contains(shape, 0) {
		return 0, true
	}
	return int(size), true
}

// tensorPlan is a tensor that is going to be written.
type tensorPlan struct {
	dtype  Dtype
	shape  []uint64
	nbytes int
}

func planTensor(dtype Dtype, shape []uint64) (tensorPlan, error) {
	if !dtype.known() {
		return tensorPlan{}, failf(InvalidArgument, "no element type has the code %d and %d bits", dtype>>8, dtype&0xFF)
	}
	if len(shape) > TensorDims {
		return tensorPlan{}, failf(InvalidArgument, "a tensor of %d dimensions: at most %d", len(shape), TensorDims)
	}
	n, ok := tensorBytes(dtype, shape)
	if !ok {
		return tensorPlan{}, failf(InvalidArgument, "a tensor of %v of the shape %v: that is 2^63 bytes or more", dtype, shape)
	}
	return tensorPlan{dtype, shape, n}, nil
}

// room is how many bytes of payload to reserve: enough wherever it begins. Negative where that is more than an int holds.
func (p tensorPlan) room() int { return 8 + 8*len(p.shape) + tensorAlign - 1 + p.nbytes }

// write writes the header into a payload, and says where the elements begin: on an address that is a multiple of 64.
func (p tensorPlan) write(payload []byte) int {
	header := 8 + 8*len(p.shape)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(payload)))
	offset := header + int(-(at+uintptr(header))%tensorAlign)
	fixed := uint64(p.dtype>>8) | uint64(p.dtype&0xFF)<<8 | uint64(len(p.shape))<<16 | uint64(offset)<<32
	binary.LittleEndian.PutUint64(payload, fixed)
	for i, dim := range p.shape {
		binary.LittleEndian.PutUint64(payload[8+8*i:], dim)
	}
	clear(payload[header:offset])
	return offset
}
