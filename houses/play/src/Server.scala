import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.Future
import scala.concurrent.duration._

import org.apache.pekko.stream.BoundedSourceQueue
import org.apache.pekko.stream.QueueOfferResult.Enqueued
import org.apache.pekko.stream.scaladsl._
import play.api.libs.json._
import play.api.mvc.WebSocket
import play.api.routing.Router
import play.api.routing.sird._
import play.core.server.DefaultPekkoHttpServerComponents
import play.core.server.ServerConfig

/** The auction house on Play: calls, answers and changes are messages of a WebSocket. */
final class Server(host: String, port: Int) extends DefaultPekkoHttpServerComponents {
  override lazy val serverConfig: ServerConfig = ServerConfig(port = Some(port), address = host)

  private val connections = ConcurrentHashMap.newKeySet[BoundedSourceQueue[JsValue]]
  private val house = new House(tell)(actorSystem.dispatchers.lookup("hashing"))
  actorSystem.scheduler.scheduleWithFixedDelay(100.millis, 100.millis)(() => house.endDue())(executionContext)

  private def tell(change: Change): Unit = {
    val message = Json.arr("change", change)
    connections.forEach { changes =>
      if (changes.offer(message) != Enqueued) {
        connections.remove(changes)
        changes.fail(new Exception("reads too slowly"))
      }
    }
  }

  /** Its queue is there before the WebSocket is, so that whoever has connected misses nothing. */
  private def socket: WebSocket = WebSocket.accept[JsValue, JsValue] { _ =>
    val session = new Session
    val (changes, told) = Source.queue[JsValue](Server.QueueMax).preMaterialize()
    connections.add(changes)
    Flow[JsValue]
      .mapAsync(1)(answer(session, _))
      .merge(told, eagerComplete = true)
      .watchTermination()((_, end) => end.onComplete(_ => connections.remove(changes))(executionContext))
  }

  private def answer(session: Session, message: JsValue): Future[JsValue] = message match {
    case JsArray(collection.Seq(JsString("call"), number: JsNumber, JsString(name), args)) =>
      house.call(session, name, args).map(Json.arr("answer", number, _))(executionContext)
    case _ =>
      Future.successful(Json.arr("answer", JsNull, Refusal("bad-request", "that is not a call").answer))
  }

  override lazy val router: Router = Router.from { case GET(p"/house") => socket }
}

object Server {
  /** How many changes may wait for a client, about 2 KiB each; who reads more slowly is disconnected. */
  private val QueueMax = 1024

  def main(arguments: Array[String]): Unit = {
    val host = sys.env.getOrElse("HOST", "127.0.0.1")
    val server = new Server(host, sys.env.getOrElse("PORT", "0").toInt).server
    println(s"""{"listening":"$host:${server.mainAddress.getPort}"}""")
  }
}
