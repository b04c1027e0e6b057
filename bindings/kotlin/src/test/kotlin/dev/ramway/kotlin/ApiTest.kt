package dev.ramway.kotlin

import java.lang.reflect.Method
import java.lang.reflect.Modifier
import kotlin.io.path.Path
import kotlin.io.path.div
import kotlin.io.path.readLines
import kotlin.test.Test
import kotlin.test.assertEquals

/** docs/api/kotlin.txt says what there is: every call, option and default of every language has its line. */
class ApiTest {
    private val pages = Path("../../docs/api")
    private val main = listOf(
        Sender::class, Receiver::class, Publisher::class, Subscriber::class, TopicBuilder::class, Bus::class, Listener::class, Region::class, RingPair::class, OptionsBuilder::class,
        ListenOptionsBuilder::class, ConnectOptionsBuilder::class, RpcClient::class, RpcPending::class, RpcServer::class,
        RpcClientBuilder::class, RpcServerBuilder::class, CallOptionsBuilder::class,
    ).map { it.java }

    private fun lines(file: String, separator: String): List<Triple<Boolean, String, String>> {
        var only = false
        return (pages / file).readLines().mapNotNull { line ->
            only = only || line == "## Only here"
            if (line.isBlank() || line.startsWith("#")) null
            else Triple(only, line.substringBefore(separator), line.substringAfter(separator))
        }
    }

    private fun names(): Set<String> = lines("kotlin.txt", " = ").flatMap { (only, id, text) ->
        if (only) listOf(id) else if (text.startsWith("-- ")) listOf() else text.split(", ")
    }.toSet()

    /** As Kotlin calls it: the compiler adds what a value class is to a name, and get to a property's. */
    private fun said(method: String): Set<String> {
        val name = method.substringBefore('-')
        val property = name.removePrefix("get").removePrefix("set").replaceFirstChar(Char::lowercase)
        return setOf(name, property, name.removePrefix("get"))
    }

    private fun members(type: Class<*>): Set<String> =
        (listOf(type) + type.declaredClasses.filter { it.simpleName == "Companion" })
            .flatMap { it.declaredMethods.toList() + inherited(it) }
            .filter { Modifier.isPublic(it.modifiers) && !it.isSynthetic && '$' !in it.name }
            .flatMap { said(it.name) }.toSet() + type.declaredFields.map { it.name }

    /** What a ring's end and a topic's have in common, and the options of every segment. */
    private fun inherited(type: Class<*>): List<Method> =
        listOf(SendingEnd::class, ReceivingEnd::class, SegmentOptionsBuilder::class).map { it.java }.filter { it == type.superclass }
            .flatMap { it.declaredMethods.toList() }

    private fun type(name: String): Class<*>? = runCatching { Class.forName(name) }.getOrNull()

    private val topLevel = listOf("OptionsKt", "RingKt", "SendingEndKt", "TypeIdKt").map { type("dev.ramway.kotlin.$it")!! }

    private fun exists(name: String): Boolean {
        if (name.startsWith("java.")) {
            val (owner, member) = name.removePrefix("java.").split('.')
            return Class.forName("dev.ramway.$owner").methods.any { it.name == member }
        }
        val owner = name.substringBefore('.')
        val member = name.substringAfter('.', "")
        return if (member.isEmpty()) type("dev.ramway.kotlin.$name") != null || topLevel.any { name in members(it) }
        else type("dev.ramway.kotlin.$owner")?.let { member in members(it) } == true
    }

    @Test
    fun `every ID has its line`() =
        assertEquals(lines("calls.txt", " | ").map { it.second }, lines("kotlin.txt", " = ").filter { !it.first }.map { it.second })

    @Test
    fun `every name is there`() = assertEquals(listOf(), names().filterNot(::exists))

    @Test
    fun `every call is named`() {
        val names = names()
        val unnamed = main.flatMap { type ->
            (listOf(type) + type.declaredClasses.filter { it.simpleName == "Companion" })
                // A publisher's and a subscriber's are named as a sender's and a receiver's.
                .flatMap { it.declaredMethods.toList() + if (type in listOf(Publisher::class.java, Subscriber::class.java)) listOf() else inherited(it) }
                .filter { Modifier.isPublic(it.modifiers) && !it.isSynthetic && '$' !in it.name }
                .filter { method -> said(method.name).none { "${type.simpleName}.$it" in names } }
                .map { "${type.simpleName}.${it.name}" }
        }
        assertEquals(listOf(), unnamed)
    }

    @Test
    fun `the defaults are those of the Java library`() {
        assertEquals(dev.ramway.Options.DEFAULT, options { })
        assertEquals(dev.ramway.ListenOptions.DEFAULT, ListenOptionsBuilder().build())
        assertEquals(dev.ramway.ConnectOptions.DEFAULT, ConnectOptionsBuilder().build())
        assertEquals(dev.ramway.CallOptions.DEFAULT.window(), CallOptionsBuilder().build().window())
        ringPair().use { assertEquals(1L shl 20, it.sender.capacity) }
    }
}
