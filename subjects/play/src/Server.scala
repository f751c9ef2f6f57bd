import java.util.concurrent.ConcurrentHashMap

import org.apache.pekko.NotUsed
import org.apache.pekko.stream.Materializer
import org.apache.pekko.stream.OverflowStrategy
import org.apache.pekko.stream.scaladsl._
import org.apache.pekko.util.ByteString
import play.api.Configuration
import play.api.http.ContentTypes
import play.api.libs.EventSource
import play.api.mvc.Result
import play.api.mvc.Results._
import play.api.mvc.WebSocket
import play.api.routing.Router
import play.api.routing.sird._
import play.core.server.DefaultPekkoHttpServerComponents
import play.core.server.ServerConfig

/** One channel: hubs take what all publish, encode it once for each framing, and wait for the slowest subscriber. */
final class Channel(implicit materializer: Materializer) {
  val (sink, messages) = MergeHub.source[String].toMat(BroadcastHub.sink[String])(Keep.both).run()

  val events: Source[ByteString, NotUsed] =
    messages.via(EventSource.flow).map(event => ByteString(event.formatted)).runWith(BroadcastHub.sink)

  val lines: Source[ByteString, NotUsed] =
    messages.map(data => ByteString(data + "\n")).runWith(BroadcastHub.sink)

  /** Posts go through one queue, so that they keep their order. */
  val posts: SourceQueueWithComplete[String] =
    Source.queue[String](256, OverflowStrategy.backpressure, 16384).to(sink).run()

  // A hub that nobody listens to would wait for its first subscriber.
  messages.runWith(Sink.ignore)
  events.runWith(Sink.ignore)
  lines.runWith(Sink.ignore)
}

final class Server(host: String, port: Int, isCrossOrigin: Boolean) extends DefaultPekkoHttpServerComponents {
  override lazy val serverConfig: ServerConfig = ServerConfig(port = Some(port), address = host)

  private val channels = new ConcurrentHashMap[String, Channel]
  private def channel(name: String): Channel = channels.computeIfAbsent(name, _ => new Channel)

  private def all[T](names: Seq[String])(source: Channel => Source[T, NotUsed]): Source[T, NotUsed] =
    names.map(name => source(channel(name))).reduceOption(_ merge _).getOrElse(Source.never)

  private def chunked(first: String, source: Source[ByteString, NotUsed], contentType: String): Result =
    allowed(Ok.chunked(Source.single(ByteString(first)).concat(source)).as(contentType))

  /** Lets pages of other origins read it, if CROSS_ORIGIN is set. */
  private def allowed(result: Result): Result =
    if (isCrossOrigin) result.withHeaders("Access-Control-Allow-Origin" -> "*") else result

  private def websocket(names: Seq[String], target: Option[String]): WebSocket =
    WebSocket.accept[String, String] { _ =>
      val sink = target.orElse(names.headOption).fold[Sink[String, Any]](Sink.ignore)(channel(_).sink)
      Flow.fromSinkAndSourceCoupled(sink, all(names)(_.messages))
    }

  override lazy val router: Router = Router.from {
    case GET(p"/ws" ? q_s"channel=$names" & q_o"publish=$target") => websocket(names, target)
    case GET(p"/ws/echo") => WebSocket.accept[String, String](_ => Flow[String])
    case GET(p"/sse" ? q_s"channel=$names") =>
      defaultActionBuilder(chunked(":\n\n", all(names)(_.events), ContentTypes.EVENT_STREAM))
    case GET(p"/stream" ? q_s"channel=$names") =>
      defaultActionBuilder(chunked("\n", all(names)(_.lines), "application/x-ndjson"))
    case POST(p"/publish" ? q"channel=$name") =>
      defaultActionBuilder.async(playBodyParsers.byteString) { request =>
        channel(name).posts.offer(request.body.utf8String).map(_ => allowed(NoContent))(executionContext)
      }
    case POST(p"/echo") =>
      defaultActionBuilder(playBodyParsers.byteString)(request => allowed(Ok(request.body)))
    // Browsers send a preflight before a page of another origin posts JSON.
    case OPTIONS(p"/$path*") if isCrossOrigin =>
      val rights = Seq("Access-Control-Allow-Headers" -> "content-type", "Access-Control-Max-Age" -> "7200")
      defaultActionBuilder(allowed(NoContent).withHeaders(rights: _*))
  }
}

object Server extends App {
  private val host = sys.env.getOrElse("HOST", "127.0.0.1")
  private val server = new Server(host, sys.env.getOrElse("PORT", "0").toInt, sys.env.contains("CROSS_ORIGIN")).server
  println(s"""{"listening":"$host:${server.mainAddress.getPort}"}""")
}
