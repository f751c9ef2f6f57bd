import java.security.MessageDigest
import java.security.SecureRandom
import java.util.Locale
import javax.crypto.SecretKeyFactory
import javax.crypto.spec.PBEKeySpec

import scala.collection.immutable.TreeMap
import scala.concurrent.ExecutionContext
import scala.concurrent.Future
import scala.concurrent.duration._

import play.api.libs.json._

final case class Leading(bidder: String, amountCents: Long)

final case class Item(
    id: Long,
    name: String,
    description: String,
    owner: String,
    minimumCents: Long,
    expiresMs: Long,
    leading: Option[Leading],
    version: Long
)

final case class Change(kind: String, item: Item)

object Change {
  private implicit val inJson: JsonConfiguration =
    JsonConfiguration(JsonNaming.SnakeCase, optionHandlers = OptionHandlers.WritesNull)
  implicit val leadingWrites: OWrites[Leading] = Json.writes
  implicit val itemWrites: OWrites[Item] = Json.writes
  implicit val writes: OWrites[Change] = Json.writes
}

final case class Refusal(code: String, message: String, more: JsObject = JsObject.empty)
    extends Exception(message, null, false, false) {
  def answer: JsObject = Json.obj("error" -> code, "message" -> message) ++ more
}

/** Whose a connection is. */
final class Session {
  @volatile var user: Option[String] = None

  def mustBe: String = user.getOrElse(throw Refusal("unauthorized", "register or log in first"))
}

/** What a call is given: an object with the members that the call names, and no others. */
final class Arguments(args: JsValue, names: Set[String]) {
  private val members = args match {
    case JsObject(members) if members.keySet == names => members
    case _ => throw Arguments.bad(names.mkString("the argument is an object with these members alone: ", ", ", ""))
  }

  def text(name: String, shortest: Int, longest: Int): String = members(name) match {
    case JsString(text) if (shortest to longest).contains(text.codePointCount(0, text.length)) => text
    case _ => throw Arguments.bad(s"$name is text of $shortest to $longest characters")
  }

  def whole(name: String, least: Long, most: Long): Long = members(name) match {
    case JsNumber(number) if number >= least && number <= most && number.isWhole => number.toLong
    case _ => throw Arguments.bad(s"$name is a whole number from $least to $most")
  }

  def accountName: String = members("name") match {
    case JsString(name) if name.matches("[A-Za-z0-9][A-Za-z0-9_-]{1,23}") => name
    case _ => throw Arguments.bad("a name has 2 to 24 of A-Z a-z 0-9 - _, the first a letter or digit")
  }

  def password: String = text("password", 8, 128)
  def id: Long = whole("id", 1, Long.MaxValue)
  def cents(name: String): Long = whole(name, 1, 1000000000000L)
}

object Arguments {
  def apply(args: JsValue, names: String*): Arguments = new Arguments(args, names.toSet)

  private def bad(message: String) = Refusal("bad-request", message)
}

/** The auction house. Its lock makes its changes a sequence, in which `tell` is given them; `tell` must not block. */
final class House(tell: Change => Unit)(implicit hashing: ExecutionContext) {
  import Change._
  import House._

  private var accounts = Map.empty[String, Account] // by name in small letters
  private var lots = TreeMap.empty[Long, Lot]
  private var lastId = 0L
  private var version = 0L

  /** The answer, which may be a refusal. */
  def call(session: Session, name: String, args: JsValue): Future[JsObject] = {
    def now(answer: => JsObject) = Future.successful(answer)
    Future
      .delegate(name match {
        case "register" => register(session, Arguments(args, "name", "password"))
        case "log-in" => logIn(session, Arguments(args, "name", "password"))
        case "list" => now(list(Arguments(args)))
        case "own-bids" => now(ownBids(session, Arguments(args)))
        case "add" => now(add(session, Arguments(args, "name", "description", "minimum_cents", "expires_ms")))
        case "remove" => now(remove(session, Arguments(args, "id")))
        case "bid" => now(bid(session, Arguments(args, "id", "amount_cents")))
        case _ => throw Refusal("bad-request", "there is no such call")
      })(ExecutionContext.parasitic)
      .recover { case refusal: Refusal => refusal.answer }(ExecutionContext.parasitic)
  }

  /** Ends what is over; to be called several times a second. */
  def endDue(): Unit = synchronized {
    val now = System.currentTimeMillis
    lots.values.filter(lot => !lot.ended && lot.item.expiresMs <= now).foreach { lot =>
      changed("ended", lot.copy(ended = true))
    }
  }

  private def register(session: Session, args: Arguments): Future[JsObject] = {
    val name = args.accountName
    val password = args.password
    if (account(name).isDefined) throw nameTaken
    Future {
      val salt = newSalt()
      val made = Account(name, salt, hashed(password, salt))
      synchronized {
        if (account(name).isDefined) throw nameTaken
        accounts += key(name) -> made
      }
      become(session, name)
    }
  }

  private def logIn(session: Session, args: Arguments): Future[JsObject] = {
    val known = account(args.accountName)
    val password = args.password
    Future {
      // Of an unknown name the time would tell, so something is hashed for it too.
      val hash = hashed(password, known.fold(newSalt())(_.salt))
      known.filter(account => MessageDigest.isEqual(hash, account.hash)) match {
        case Some(account) => become(session, account.name)
        case None => throw Refusal("unauthorized", "there is no such name with this password")
      }
    }
  }

  private def become(session: Session, name: String): JsObject = {
    session.user = Some(name)
    Json.obj("name" -> name)
  }

  private def list(args: Arguments): JsObject = synchronized {
    Json.obj("version" -> version, "items" -> lots.values.map(_.item))
  }

  private def ownBids(session: Session, args: Arguments): JsObject = {
    val user = session.mustBe
    val bids = for { lot <- synchronized(lots).values; amount <- lot.bids.get(user) }
      yield Json.obj("id" -> lot.item.id, "amount_cents" -> amount)
    Json.obj("bids" -> bids)
  }

  private def add(session: Session, args: Arguments): JsObject = {
    val name = args.text("name", 1, 100)
    val description = args.text("description", 0, 1000)
    val minimum = args.cents("minimum_cents")
    val now = System.currentTimeMillis
    val expires = args.whole("expires_ms", now + 1.second.toMillis, now + 90.days.toMillis)
    val user = session.mustBe
    synchronized {
      lastId += 1
      answer(changed("added", Lot(Item(lastId, name, description, user, minimum, expires, None, 0))))
    }
  }

  private def remove(session: Session, args: Arguments): JsObject = {
    val id = args.id
    val user = session.mustBe
    synchronized {
      val lot = found(id)
      if (lot.item.owner != user) throw Refusal("forbidden", "the item is another's")
      val removed = changed("removed", lot)
      lots -= id
      answer(removed)
    }
  }

  private def bid(session: Session, args: Arguments): JsObject = {
    val id = args.id
    val amount = args.cents("amount_cents")
    val user = session.mustBe
    synchronized {
      val lot = found(id)
      if (lot.item.expiresMs <= System.currentTimeMillis) throw Refusal("expired", "the auction is over")
      val least = lot.item.leading.fold(lot.item.minimumCents)(_.amountCents + 1)
      if (amount < least) {
        val more = Json.obj("leading" -> lot.item.leading, "least_cents" -> least)
        throw Refusal("outbid", s"bid $least cents or more", more)
      }
      val item = lot.item.copy(leading = Some(Leading(user, amount)))
      answer(changed("bid", lot.copy(item, lot.bids + (user -> amount))))
    }
  }

  private def account(name: String): Option[Account] = synchronized(accounts.get(key(name)))

  private def found(id: Long): Lot = lots.getOrElse(id, throw Refusal("not-found", "there is no such item"))

  private def answer(lot: Lot): JsObject = Json.obj("item" -> lot.item)

  /** Counts a change, keeps it and tells it; the lock is held. */
  private def changed(kind: String, lot: Lot): Lot = {
    version += 1
    val now = lot.copy(item = lot.item.copy(version = version))
    lots += now.item.id -> now
    tell(Change(kind, now.item))
    now
  }
}

object House {
  // What OWASP's Password Storage Cheat Sheet recommends for PBKDF2 with SHA-512.
  private val HashRounds = 210000
  private val HashBits = 512

  private final case class Account(name: String, salt: Array[Byte], hash: Array[Byte])

  /** An item, each bidder's highest bid, and whether its end was told. */
  private final case class Lot(item: Item, bids: Map[String, Long] = Map.empty, ended: Boolean = false)

  private val random = new SecureRandom

  private def newSalt(): Array[Byte] = {
    val salt = new Array[Byte](16)
    random.nextBytes(salt)
    salt
  }

  private def hashed(password: String, salt: Array[Byte]): Array[Byte] =
    SecretKeyFactory
      .getInstance("PBKDF2WithHmacSHA512")
      .generateSecret(new PBEKeySpec(password.toCharArray, salt, HashRounds, HashBits))
      .getEncoded

  private def key(name: String) = name.toLowerCase(Locale.ROOT)

  private def nameTaken = Refusal("name-taken", "somebody has this name")
}
