package dev.ramway.kotlin

import dev.ramway.Message
import dev.ramway.MessageCopy

/**
 * What the application says a message is: a number below 0xFFFF0000, without a sign. A value class: it costs nothing, and a
 * tag or a length cannot be passed in its place.
 */
@JvmInline
public value class TypeId(public val value: Int) {
    override fun toString(): String = value.toUInt().toString()
}

/** `TypeId(0x80000000u)`. */
public fun TypeId(value: UInt): TypeId = TypeId(value.toInt())

/** The message's type id. */
public val Message.type: TypeId get() = TypeId(typeId())

/** The message's type id. */
public val MessageCopy.type: TypeId get() = TypeId(typeId())
